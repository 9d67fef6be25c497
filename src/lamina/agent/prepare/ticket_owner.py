"""From tickets to the container that is about to start, without guessing.

Kubelet says which tickets, but not for whom. Two facts together give the answer:

* PodResources names the pod. A ticket belongs to one pod at a time, so a pod that is listed with any of the tickets is
  the owner. No listed pod, two pods, or two pods with the same name: an error, and kubelet asks again.
* The CDI name identifies the container within the pod. Each container's Allocate got a name of its own, and the
  container runtime looks up only that name. Ordinary init containers are never listed, and share tickets with the
  containers that start after them; kubelet calls Allocate once for each of them, in the pod's order. So when a set of
  tickets starts, the names of all containers that may have it get their own limits at once: the last name belongs to
  the container that is listed with the set, the earlier ones to the init containers in their order. No container can
  use another one's limits, whichever of them starts.

If the counts do not determine the init container of a name (several request the same number of GPUs but have different
tickets), or kubelet asked again for a container that it had forgotten, the name gets the smallest limits of the
candidates. All candidates are within the pod's grant on those GPUs, because init containers and the others do not run
at the same time.

An init container whose tickets no listed container of the pod has, even in part, cannot be identified and does not
start: the pod has to request as many GPUs in one of its containers, or make the init container a sidecar.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.agent.devices.tickets import TicketKind
from lamina.agent.state.record import Allocation, DeviceIds
from lamina.errors import NotYet
from lamina.model.grants import ContainerGrant, Grant
from lamina.ports.kubelet.podresources import Holder


class Owner(NamedTuple):
    """The pod that has a set of devices. `container` is the one listed with exactly that set, or empty."""

    namespace: str
    pod: str
    container: str

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}"


def find_owner(devices: DeviceIds, listed: Sequence[Holder]) -> Owner:
    """The owner of `devices`. Raises NotYet with the reason if it is not certain."""
    touching = [holder for holder in listed if holder.devices & devices]
    pods = sorted({(holder.namespace, holder.pod) for holder in touching})
    if not pods:
        raise NotYet(
            "kubelet lists no container with these tickets; an init container can only be identified by another "
            "container of its pod that has some of the same tickets"
        )
    if len(pods) > 1:
        names = " and ".join(f"{namespace}/{pod}" for namespace, pod in pods)
        raise NotYet(f"kubelet lists several pods with these tickets: {names}")
    namespace, pod = pods[0]
    containers = [holder.container for holder in listed if (holder.namespace, holder.pod) == pods[0]]
    if len(set(containers)) < len(containers):
        raise NotYet(f"kubelet lists two pods with the name {namespace}/{pod}; the older one must end first")
    exact = [holder.container for holder in touching if holder.devices == devices]
    if len(exact) > 1:
        raise NotYet(f"kubelet lists several containers of {namespace}/{pod} with these tickets: {', '.join(exact)}")
    return Owner(namespace, pod, exact[0] if exact else "")


def assign_names(
    allocations: Sequence[Allocation], grant: Grant, listed_container: str, tickets: DeviceIds, kind: TicketKind
) -> dict[str, ContainerGrant]:
    """The container of the grant that each name belongs to.

    `allocations` are those of one set of `tickets`, oldest first; `listed_container` is the container listed with it,
    or empty. Names bound to other pods are left out. Raises NotYet if the grant or the record do not match.
    """
    inits = [c for c in grant.containers if c.init and not c.sidecar and kind.matches(c, len(tickets))]
    candidates = [*inits, _listed_grant(grant, listed_container, tickets, kind)] if listed_container else inits
    if not candidates:
        raise NotYet(f"the grant of pod {grant.pod} has no container that can have {len(tickets)} {kind.resource}")
    bound = {a.name: a.bound.container for a in allocations if a.bound is not None and a.bound.pod_uid == grant.pod_uid}
    unbound = [a.name for a in allocations if a.bound is None]
    if not bound and not unbound:
        raise NotYet(f"no Allocate call is on record for these tickets of pod {grant.pod}; delete and recreate the pod")
    known = {name: _container_grant(grant, container) for name, container in bound.items()}
    if bound:
        return known | {name: _smallest(candidates) for name in unbound}
    if len(unbound) >= len(candidates):
        return dict(zip(unbound[-len(candidates) :], candidates, strict=True))
    uncertain = unbound[:-1] if listed_container else unbound
    certain = {unbound[-1]: candidates[-1]} if listed_container else {}
    return certain | {name: _smallest(inits) for name in uncertain}


def _listed_grant(grant: Grant, name: str, tickets: DeviceIds, kind: TicketKind) -> ContainerGrant:
    container = _container_grant(grant, name)
    if not kind.matches(container, len(tickets)):
        granted = kind.count_for(container)
        raise NotYet(
            f'container "{name}": the grant of pod {grant.pod} has {granted} {kind.resource}, but kubelet allocated '
            f"{len(tickets)}"
        )
    return container


def _container_grant(grant: Grant, name: str) -> ContainerGrant:
    container = next((container for container in grant.containers if container.name == name), None)
    if container is None:
        raise NotYet(f'the grant of pod {grant.pod} has no container "{name}"')
    return container


def _smallest(candidates: Sequence[ContainerGrant]) -> ContainerGrant:
    return min(candidates, key=lambda c: (sum(s.memory_mib for s in c.shares), sum(s.cores for s in c.shares)))
