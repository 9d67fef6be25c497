"""A node whose GPUs claims may have, over the fakes, and claims as the scheduler leaves them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from lamina.agent.inventory.usage import devices_in_use
from lamina.agent.nvidia.time_slices import TimeSliceManager
from lamina.agent.prepare.plan import WriteLimits
from lamina.agent.resource_claims.daemons import ClaimDaemons
from lamina.agent.resource_claims.dra_devices import Doors, DraDevices
from lamina.agent.resource_claims.plan import ClaimSharing
from lamina.agent.resource_claims.preparer import ClaimPreparer, ReadyDevice
from lamina.agent.resource_claims.publisher import SlicePublisher, SliceWatch
from lamina.agent.resource_claims.unit import ClaimRef
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration import DEFAULT
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant
from lamina.dra.names import DRIVER, cdi_name
from lamina.ports.kube import NODES, PODS, RESOURCE_CLAIMS, Object
from lamina.ports.nvml import GpuFacts
from lamina.ports.time_slices import FakeTimeSlices
from tests.agent.node import FACTS, KIND, Node, node_offer
from tests.worlds.deaths import Life

TOTAL_MIB = 32768


def result(request: str = "gpu", device: str = "gpu-0", *, memory: str = "", cores: int = 0, **more: Any) -> Object:
    """One device of an allocation. Without an amount it is whole."""
    found: Object = {"request": request, "driver": DRIVER, "pool": "node-1", "device": device, **more}
    if memory:
        found |= {"consumedCapacity": {"memory": memory, "cores": str(cores)}, "shareID": f"share-of-{request}"}
    return found


def sharing(strategy: str, *requests: str, kind: str = "GpuConfig", **config: Any) -> dict[str, Any]:
    """Parameters of NVIDIA's driver in a claim."""
    field = "mpsConfig" if strategy == "MPS" else "timeSlicingConfig"
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": kind,
        "sharing": {"strategy": strategy} | ({field: config} if config else {}),
    }
    return {"requests": list(requests), "source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}


class ClaimNode(Node):
    """`claims` prepares them. Its GPUs may be used in `modes`."""

    modes: tuple[Mode, ...] = (Mode.QUOTA,)

    def __init__(self, root: Path, facts: Sequence[GpuFacts] = FACTS, **settings: Any) -> None:
        self._settings = settings
        self.lengths = FakeTimeSlices()
        self.failures: list[str] = []
        """What was reported of time slices."""
        super().__init__(root, facts=facts)

    def start(self, life: Life | None = None) -> None:
        super().start(life)
        self.context = replace(self.context, settings=replace(self.context.settings, **self._settings))
        settings = structs.replace(DEFAULT.for_node(self.name), modes=self.modes)
        self.offers = node_offer(self.name, self._in_use, settings=settings, ticket_kinds=(KIND,))
        self.observe()
        self.doors = Doors(self.context, self.offers)
        self.doors.synced = True
        self.offer = DraDevices(self.context, self.offers, self.doors)
        self.daemons = ClaimDaemons(self.context, self.offers, self.daemons.lifecycle, self.root / "mps")
        self.time_slices = TimeSliceManager(self.context, self.offers, self.lengths, wanted=None, report=self._reported)
        self.claims = self.claim_preparer(self._write_limits)
        self.watch = SliceWatch(self.context)
        self.publisher = SlicePublisher(self.context, self.offer, self.watch)

    def claim_preparer(self, write: WriteLimits) -> ClaimPreparer:
        """One that writes limits in this way."""
        sharing = ClaimSharing(self.daemons, self.time_slices)
        return ClaimPreparer(self.context, self.offer, self.offers, sharing, self.steps(write))

    async def _reported(self, uuid: str, failure: str) -> None:
        self.failures.append(f"{uuid}: {failure}")

    def _in_use(self) -> Any:
        return devices_in_use(self.record.allocations, claims=self.context.record.held_claims)

    def observe(self, **unhealthy: str) -> None:
        """The GPUs as NVML lists them, some `unhealthy` by `gpu<index>`."""
        observed = [ObservedGpu(gpu.facts, unhealthy.get(f"gpu{gpu.facts.index}", "")) for gpu in self.gpus.values()]
        self.offers.update(driver="535.1", observed=tuple(observed))

    async def pod(
        self, name: str, *containers: ContainerGrant, node: str = "", grant: dict[str, Any] | None = None
    ) -> str:
        uid = await super().pod(name, *containers, node=node, grant=grant)
        self.doors.observe(uid, "default", name)
        return uid

    async def joined(self) -> None:
        await self.kube.create(NODES, {"metadata": {"name": self.name}})

    async def claim(self, name: str, *results: Object, config: Sequence[Object] = (), pods: Sequence[str] = ()) -> str:
        """An allocated claim; its UID."""
        reserved = [{"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"} for pod in pods]
        devices = {"results": list(results or [result(memory="4Gi")]), "config": list(config)}
        made: Object = {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
            "spec": {},
            "status": {"allocation": {"devices": devices}, "reservedFor": reserved},
        }
        await self.kube.create(RESOURCE_CLAIMS, made)
        return f"uid-of-{name}"

    async def prepare(self, name: str) -> list[ReadyDevice]:
        return await self.claims.prepare(ref(name))

    async def unprepare(self, name: str) -> None:
        await self.claims.unprepare(ref(name))

    async def prepared(self, name: str, *results: Object) -> list[ReadyDevice]:
        """A new claim, prepared."""
        await self.claim(name, *results)
        return await self.prepare(name)

    async def using_pod(self, name: str, *uses: Object | Sequence[Object], claims: Sequence[str] = ("c",)) -> None:
        """A pod with a container for each of `uses`, an entry of resources.claims or several."""
        containers = [
            {"name": f"c{number}", "resources": {"claims": [use] if isinstance(use, dict) else [*use]}}
            for number, use in enumerate(uses)
        ]
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        spec = {"nodeName": self.name, "containers": containers, "resourceClaims": entries}
        await self.kube.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def visible(self, claim: str, request: str = "gpu") -> str:
        """What the containers of a request see."""
        spec = self.spec(cdi_name(f"uid-of-{claim}", request))
        assert spec is not None
        (variable,) = [each for each in spec["env"] if each.startswith("NVIDIA_VISIBLE_DEVICES=")]
        return str(variable).partition("=")[2]

    def limits_of(self, claim: str, request: str = "gpu") -> str:
        return self.limits(cdi_name(f"uid-of-{claim}", request))

    def left(self) -> list[str]:
        """What is on the disk of claims."""
        return [path for path in self.disk() if path.startswith(("cdi", "containers"))]


def ref(name: str) -> ClaimRef:
    return ClaimRef("default", name, f"uid-of-{name}")


async def dies(node: ClaimNode, at: int, name: str = "c", *, torn: bool, preparing: bool) -> bool:
    """Whether the agent died at this change, before it or, where `torn` is set, amid it."""
    return await node.dies(Life(2 * at, torn=torn), lambda: (node.prepare if preparing else node.unprepare)(name))
