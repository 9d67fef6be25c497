"""Before a container with tickets starts: find out which container it is, and make what its grant says.

Kubelet and the API server are asked, and each answer is checked against the others. Every doubt is an error that
kubelet shows in the pod's status before it asks again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import structs

from lamina.agent.context import NodeContext
from lamina.agent.devices.tickets import TicketKind
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.container_identity import Owner, assign_names, owner_of
from lamina.agent.prepare.plan import PodRef, make_plan
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.grants import Grant
from lamina.core.sizes import usable
from lamina.errors import BadInput, NotYet

log = logging.getLogger(__name__)


class TicketPreparer:
    """Prepares the containers of one node with one kind of tickets."""

    def __init__(
        self,
        node: NodeContext,
        kind: TicketKind,
        steps: PreparationSteps,
        clients: GrantClients,
        *,
        gpus: Callable[[], Mapping[str, ObservedGpu]],
        release_gone: Callable[[], Awaitable[None]],
    ) -> None:
        """`gpus` returns what containers with grants may use; `release_gone` releases what pods had that are gone."""
        self._node = node
        self._kind = kind
        self._steps = steps
        self._clients = clients
        self._gpus = gpus
        self._release_gone = release_gone

    async def prepare(self, ids: Iterable[str]) -> None:
        """Make everything that the owner of these tickets needs. Raises LaminaError with the reason if that fails."""
        tickets = frozenset(ids)
        owner = await owner_of(tickets, self._kind.resource, self._node)
        grant = await self._grant(owner)
        allocations = self._node.record.of(tickets, self._kind.resource)
        containers = assign_names(allocations, grant, owner.container, tickets, self._kind, known_inits=owner.inits)
        pod = PodRef(owner.namespace, owner.pod, grant.pod_uid)
        edits = {name: self._clients.edits(each, self._kind.resource) for name, each in containers.items()}
        plan = make_plan(containers, pod, self._gpus(), self._node.paths, edits=edits)
        try:
            await self._steps.take_for_pod(plan)
        except (NotYet, BadInput):
            await self._release_gone()  # what is in the way may belong to a pod that is gone
            await self._steps.take_for_pod(plan)
        names = ", ".join(sorted({bound.container for bound in plan.names.values()}))
        log.info("Prepared %s: %s", owner.name, names)

    async def _grant(self, owner: Owner) -> Grant:
        node, name = self._node.node, owner.name
        grant = await self._node.cluster.get_grant(owner.namespace, owner.pod, owner.pod_uid)
        if grant is None:
            raise NotYet(f"pod {name} has no grant; on this node only pods placed by Lamina's scheduler get GPUs")
        if grant.pod_uid != owner.pod_uid:
            raise NotYet(f"the grant of pod {name} is for UID {grant.pod_uid}, but the pod has {owner.pod_uid}")
        if grant.node != node:
            raise NotYet(f"the grant of pod {name} is for node {grant.node}, but the pod is on {node}")
        return structs.replace(grant, containers=tuple(map(usable, grant.containers)))
