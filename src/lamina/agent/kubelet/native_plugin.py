"""How native devices are chosen, which requests are refused, and what a container gets with them.

Replicas are chosen one at a time: first from the GPU of which the container has fewest, so that no container gets two
replicas of a GPU while another GPU has one left; among those from the GPU with the fewest replicas allocated
(distributed) or the most (packed). NVIDIA's packed policy has only the second rule, and gives a container that requests
two replicas the same GPU twice.

Whole GPUs are chosen together: the set with the best connections between its members.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from lamina.agent.devices.native_devices import NativeKind, invalid_request, unit_uuid
from lamina.agent.devices.tickets import KubeletDevice
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.kubelet.plugin import AllocationPolicy
from lamina.agent.prepare.allocate_response import assigned_devices, fill_response, missing_channel
from lamina.agent.state.observed import Observable
from lamina.configuration.nvidia import NvidiaConfig
from lamina.ports.host import Host
from lamina.ports.kubelet import deviceplugin_pb2 as messages

PACKED = "packed"
_MAX_SETS = 200_000
"""How many sets of whole GPUs are compared at most; no existing node needs more."""


def prefer_replicas(
    available: Sequence[str], required: Sequence[str], size: int, every: Sequence[str], policy: str
) -> list[str]:
    """`size` replicas, the required ones first. `every` has all replicas of the resource."""
    total = Counter(map(unit_uuid, every))
    free: dict[str, list[str]] = {}
    for device in available:
        if device not in required:
            free.setdefault(unit_uuid(device), []).append(device)
    left = Counter(map(unit_uuid, available))
    allocated = {unit: total[unit] - left[unit] for unit in free}
    own = Counter(map(unit_uuid, required))
    chosen = list(required)
    order = list(free)
    while len(chosen) < size and free:
        sign = -1 if policy == PACKED else 1
        unit = min(free, key=lambda gpu: (own[gpu], sign * allocated[gpu], order.index(gpu)))
        chosen.append(free[unit].pop(0))
        own[unit] += 1
        allocated[unit] += 1
        if not free[unit]:
            del free[unit]
    return chosen


def prefer_connected(
    available: Sequence[str], required: Sequence[str], size: int, links: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """`size` whole GPUs with the highest sum of link scores between them; `links` has scores by both UUIDs."""
    fixed = list(required)
    rest = [device for device in available if device not in fixed]
    best, best_score = rest[: size - len(fixed)], -1
    for number, added in enumerate(combinations(rest, max(0, size - len(fixed)))):
        score = sum(links.get(a, {}).get(b, 0) for a, b in combinations([*fixed, *added], 2))
        if score > best_score:
            best, best_score = list(added), score
        if number >= _MAX_SETS:
            break
    return [*fixed, *best]


class NativeAllocationPolicy(AllocationPolicy):
    """For the devices of one kind, which are among the `offered`, by NVIDIA's configuration."""

    prefers = True

    def __init__(
        self,
        kind: NativeKind,
        config: NvidiaConfig,
        offered: Observable[tuple[KubeletDevice, ...]],
        offers: NodeOfferStore,
        host: Host,
    ) -> None:
        self._kind = kind
        self._offered = offered
        self._config = config
        self._offers = offers
        self._host = host

    def refusal(self, ids: Sequence[str]) -> str:
        one_at_most = self._config.sharing.one_at_most
        reason = invalid_request(self._kind, ids, one_at_most=one_at_most)
        return reason or missing_channel(self._config, self._host)

    def fill(self, response: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        units = list(dict.fromkeys(map(unit_uuid, ids)))
        state = self._offers.state
        assigned = assigned_devices(units, state.gpus, state.mig_devices)
        fill_response(response, assigned, self._config, self._host)

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        if self._kind.replicated:
            every = [device.id for device in self._offered.value]
            return prefer_replicas(available, required, size, every, self._config.allocation)
        links = {uuid: gpu.facts.links for uuid, gpu in self._offers.gpus.items()}
        return prefer_connected(available, required, size, links)
