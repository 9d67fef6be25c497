"""What plain devices mean to kubelet: which of them a container should get, which it cannot, what comes with them."""

from collections.abc import Sequence

from lamina.agent import answers, preferring
from lamina.agent.current import Current
from lamina.agent.offer import Offer
from lamina.agent.plain import PlainKind, refusal, unit_of
from lamina.agent.plugin import Devices
from lamina.agent.tickets import Ticket
from lamina.dialects.nvidia import NvidiaConfig
from lamina.ports.kubelet import deviceplugin_pb2 as messages


class PlainDevices(Devices):
    """The devices of one kind, by NVIDIA's configuration. `offer` knows the node's GPUs and MIG devices."""

    prefers = True

    def __init__(
        self,
        kind: PlainKind,
        config: NvidiaConfig,
        offered: Current[tuple[Ticket, ...]],
        offer: Offer,
    ) -> None:
        self._kind = kind
        self._config = config
        self._offered = offered
        self._offer = offer

    def refusal(self, ids: Sequence[str]) -> str:
        return refusal(self._kind, ids, one_at_most=self._config.sharing.one_at_most) or answers.missing(self._config)

    def fill(self, answer: messages.ContainerAllocateResponse, ids: Sequence[str]) -> None:
        units = list(dict.fromkeys(map(unit_of, ids)))
        answers.fill(answer, answers.known(units, self._offer.gpus, self._offer.mig_devices), self._config)

    def preferred(self, available: Sequence[str], required: Sequence[str], size: int) -> list[str]:
        if self._kind.replicated:
            every = [device.id for device in self._offered.value]
            return preferring.replicas(available, required, size, every, self._config.allocation)
        links = {uuid: state.facts.links for uuid, state in self._offer.gpus.items()}
        return preferring.connected(available, required, size, links)
