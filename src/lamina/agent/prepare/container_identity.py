"""From tickets to the container that is about to start, without guessing.

Kubelet says which tickets, but not for whom. Two facts together give the answer:

* PodResources names the pod. A ticket belongs to one pod at a time, so a pod that is listed with any of the tickets is
  the owner. Two pods, or two pods with the same name: an error, and kubelet asks again. Where no pod is listed, the
  tickets are those of an init container, and kubelet's checkpoint names the pod and the container.
* The CDI name identifies the container within the pod. Each container's Allocate got a name of its own, and the
  container runtime looks up only that name. Ordinary init containers are never listed, and share tickets with the
  containers that start after them; kubelet calls Allocate once for each of them, in the pod's order. So when a set of
  tickets starts, the names of all containers that may have it get their own limits at once: the last name belongs to
  the container that is listed with the set, the earlier ones to the init containers in their order, which kubelet's
  checkpoint names. No container can use another one's limits, whichever of them starts.

Without a readable checkpoint, an init container whose tickets no listed container has does not start. Where several
init containers request the same number of GPUs but have different tickets, a name then gets the smallest limits of the
candidates, and so it does where kubelet asked again for a container that it had forgotten. All candidates are within
the pod's grant on those GPUs, because init containers and the others do not run at the same time.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.inventory.tickets import TicketKind
from lamina.agent.state.holdings import DeviceIds, Holding
from lamina.core.grants import ContainerGrant, Grant
from lamina.errors import NotYet, Outside
from lamina.ports.kubelet.allocations import Assignment, Holder, read_assignments


class Owner(NamedTuple):
    """The pod that has a set of devices. `container` is the one listed with exactly that set, or empty.

    `inits` has the init containers with exactly that set; None where kubelet's checkpoint does not say.
    """

    namespace: str
    pod: str
    pod_uid: str
    container: str
    inits: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}"


async def owner_of(devices: DeviceIds, resource: str, node: NodeContext) -> Owner:
    """The pod of the node that has these devices. Raises NotYet with the reason if it is not certain; Outside."""
    listed = find_listed(devices, await node.pod_resources.holders({resource}))
    if listed is None:
        return await _unlisted_owner(devices, resource, node)
    pod = await node.cluster.get_pod(listed.namespace, listed.pod)
    name = f"{listed.namespace}/{listed.pod}"
    if pod is None:
        raise NotYet(f"pod {name} does not exist in Kubernetes any more")
    if pod.node != node.node:
        raise NotYet(f"kubelet lists pod {name} on {node.node}, but Kubernetes has it on {pod.node or 'no node'}")
    return Owner(
        listed.namespace, listed.pod, pod.uid, listed.container, _known_inits(devices, resource, pod.uid, node)
    )


def _known_inits(devices: DeviceIds, resource: str, pod_uid: str, node: NodeContext) -> frozenset[str] | None:
    with suppress(NotYet, Outside):  # PodResources suffices for all but the choice between init containers
        uid, containers = find_assigned(devices, read_assignments(node.files, node.settings.kubelet_dir, resource))
        if uid == pod_uid:
            return containers
    return None


async def _unlisted_owner(devices: DeviceIds, resource: str, node: NodeContext) -> Owner:
    try:
        assigned = read_assignments(node.files, node.settings.kubelet_dir, resource)
    except Outside as error:
        raise NotYet(
            f"kubelet lists no container with these tickets: an init container can only be identified by another "
            f"container of its pod that has some of the same tickets, or by kubelet's checkpoint, and {error}"
        ) from error
    uid, containers = find_assigned(devices, assigned)
    pod = await node.cluster.find_pod(uid)
    if pod is None:
        raise NotYet(f"kubelet assigns these devices to the pod with the UID {uid}, which {node.node} does not have")
    namespace, name = pod
    return Owner(namespace, name, uid, "", containers)


def find_listed(devices: DeviceIds, listed: Sequence[Holder]) -> Holder | None:
    """The pod that is listed with some of the devices, and its container that has all of them, or an empty name.

    None where no container is listed with any of them. Raises NotYet with the reason if it is not certain.
    """
    touching = [holder for holder in listed if holder.devices & devices]
    pods = sorted({(holder.namespace, holder.pod) for holder in touching})
    if not pods:
        return None
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
    return Holder(namespace, pod, exact[0] if exact else "", devices)


def find_assigned(devices: DeviceIds, assigned: Sequence[Assignment]) -> tuple[str, frozenset[str]]:
    """The UID of the pod that has these devices, and its containers that have exactly them. Raises NotYet."""
    touching = [each for each in assigned if each.devices & devices]
    pods = {each.pod_uid for each in touching}
    exact = frozenset(each.container for each in touching if each.devices == devices)
    if len(pods) > 1:
        raise NotYet(f"kubelet assigns these devices to several pods, with the UIDs {' and '.join(sorted(pods))}")
    if not exact:
        raise NotYet("kubelet lists no container with these tickets, and assigns them to none")
    return pods.pop(), exact


def assign_names(
    allocations: Sequence[Holding],
    grant: Grant,
    listed_container: str,
    tickets: DeviceIds,
    kind: TicketKind,
    *,
    known_inits: frozenset[str] | None = None,
) -> dict[str, ContainerGrant]:
    """The container of the grant that each name belongs to.

    `allocations` are those of one set of `tickets`, oldest first; `listed_container` is the container listed with it,
    or empty, and `known_inits` are the init containers that have it, where kubelet says so. Names bound to other pods
    are left out. Raises NotYet if the grant or the record do not match.
    """
    inits = [c for c in grant.containers if c.init and not c.sidecar and kind.matches(c, len(tickets))]
    if known_inits is not None:
        inits = [container for container in inits if container.name in known_inits]
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
