"""From tickets to the container that is being started: never by guessing.

Kubelet says which tickets, not for whom. Two things together tell:

* PodResources names the pod. A ticket belongs to one pod at a time, so a pod that is listed with any of the tickets is
  the one. No pod listed, two pods, or two pods of one name: an error, and kubelet asks again.
* The CDI name names the container within the pod. Each container's Allocate got a name of its own, and the container
  runtime looks up only that name. Ordinary init containers are never listed, and they share tickets with the
  containers that start after them; kubelet then calls Allocate once for each of them, in the pod's order. So when one
  set of tickets starts, the names of all containers that may hold it are given their own limits at once, the last name
  to the container that is listed with it, the ones before to the init containers in their order. No container can pick
  up another one's limits, whichever of them is being started.

Where the counts leave open which init container a name belongs to (several ask equally many GPUs, but hold different
tickets), or where kubelet asked again for a container that it had forgotten, the name gets the smaller limits of those
that come into question. All of them are within what the pod was granted on those GPUs, because init containers and the
others do not run side by side.

An init container whose tickets none of the pod's listed containers hold, in whole or in part, cannot be known at all
and does not start: the pod has to ask as many GPUs in one of its containers, or make the init container a sidecar.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.agent.record import Allocation, Tickets
from lamina.agent.tickets import Kind
from lamina.errors import NotYet
from lamina.model.grants import ContainerGrant, Grant
from lamina.ports.kubelet.podresources import Holder


class Holding(NamedTuple):
    """The pod that holds a set of tickets; `container` is listed with exactly them, or empty if none is."""

    namespace: str
    pod: str
    container: str


def holding(tickets: Tickets, listed: Sequence[Holder]) -> Holding:
    """Who holds `tickets`. Raises NotYet with the reason where that is not certain."""
    touching = [holder for holder in listed if holder.devices & tickets]
    pods = sorted({(holder.namespace, holder.pod) for holder in touching})
    if not pods:
        raise NotYet(
            "kubelet does not list a container that holds these tickets; init containers are only known by the "
            "containers they share tickets with"
        )
    if len(pods) > 1:
        names = " and ".join(f"{namespace}/{pod}" for namespace, pod in pods)
        raise NotYet(f"kubelet lists several pods that hold these tickets: {names}")
    namespace, pod = pods[0]
    containers = [holder.container for holder in listed if (holder.namespace, holder.pod) == pods[0]]
    if len(set(containers)) < len(containers):
        raise NotYet(f"kubelet lists two pods named {namespace}/{pod}; the older one has to end first")
    exact = [holder.container for holder in touching if holder.devices == tickets]
    if len(exact) > 1:
        raise NotYet(f"kubelet lists several containers of {namespace}/{pod} with these tickets: {', '.join(exact)}")
    return Holding(namespace, pod, exact[0] if exact else "")


def assigned(
    allocations: Sequence[Allocation], grant: Grant, holder: str, tickets: Tickets, kind: Kind
) -> dict[str, ContainerGrant]:
    """Which of the grant's containers each name belongs to.

    `allocations` are those of one set of `tickets` of a kind, oldest first; `holder` is the container listed with it or
    empty. Names bound to other pods stay out. Raises NotYet where the grant or the record do not fit.
    """
    inits = [c for c in grant.containers if c.init and not c.sidecar and kind.gives(c, len(tickets))]
    candidates = [*inits, _listed(grant, holder, tickets, kind)] if holder else inits
    if not candidates:
        raise NotYet(
            f"the grant of {grant.pod} names no container with {len(tickets)} {kind.resource} that can hold them"
        )
    ours = {a.name: a.bound.container for a in allocations if a.bound is not None and a.bound.pod_uid == grant.pod_uid}
    fresh = [a.name for a in allocations if a.bound is None]
    if not ours and not fresh:
        raise NotYet(f"no name was given out for these tickets of {grant.pod}; make the pod anew")
    known = {name: _container(grant, container) for name, container in ours.items()}
    if ours:
        return known | {name: _smallest(candidates) for name in fresh}
    if len(fresh) >= len(candidates):
        return dict(zip(fresh[-len(candidates) :], candidates, strict=True))
    unsure = fresh[:-1] if holder else fresh
    certain = {fresh[-1]: candidates[-1]} if holder else {}
    return certain | {name: _smallest(inits) for name in unsure}


def _listed(grant: Grant, name: str, tickets: Tickets, kind: Kind) -> ContainerGrant:
    container = _container(grant, name)
    if not kind.gives(container, len(tickets)):
        granted = kind.asked_by(container)
        raise NotYet(
            f"the grant of {grant.pod} gives container {name} {granted} of {kind.resource}, kubelet gave it "
            f"{len(tickets)}"
        )
    return container


def _container(grant: Grant, name: str) -> ContainerGrant:
    found = next((container for container in grant.containers if container.name == name), None)
    if found is None:
        raise NotYet(f"the grant of {grant.pod} does not name container {name}")
    return found


def _smallest(candidates: Sequence[ContainerGrant]) -> ContainerGrant:
    return min(candidates, key=lambda c: (sum(s.memory_mib for s in c.shares), sum(s.cores for s in c.shares)))
