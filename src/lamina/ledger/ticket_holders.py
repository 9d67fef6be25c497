"""Pods that have tickets of a node although no grant says what they stand for.

kube-scheduler and kubelet count tickets for every pod on a node, also for one that Lamina did not place: it was created
with `nodeName`, or is of another scheduler. Such a pod has no grant, so its containers get no GPU and do not start. But
its tickets are taken, and no other pod can have them. Lamina writes a grant before it binds a pod: a pod on a node has
one or will never have one.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamina.core.gpus import Inventory
from lamina.dialects import tickets_requested
from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod
from lamina.ledger.ungranted_pods import started_containers

_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of the pod that kubelet makes for a static one. Its deletion does not end the containers."""


class TicketHolder(NamedTuple):
    """A pod on a node with the tickets that it counts for, by resource.

    `started`: a container with tickets has run, which it cannot without a grant. `leaves_s` is how long the pod may
    still take to end, None where it is not being deleted.
    """

    uid: str
    namespace: str
    pod: str
    node: str
    tickets: Mapping[str, int]
    started: bool = False
    static: bool = False
    leaves_s: int | None = None

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}"


def ticket_holder(pod: ParsedPod) -> TicketHolder | None:
    """The pod as a holder of tickets; None where it is on no node, has ended, or requests none."""
    state = pod_state(pod.obj)
    if state.stage is not Stage.BOUND or not pod.ticket_holders:
        return None
    metadata = pod.metadata
    grace_s = metadata.get("deletionGracePeriodSeconds")
    return TicketHolder(
        uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        node=state.node,
        tickets=tickets_requested(pod.obj, pod.config),
        started=not pod.ticket_holders.isdisjoint(started_containers(pod.obj.get("status") or {})),
        static=_MIRROR in (metadata.get("annotations") or {}),
        leaves_s=int(grace_s or 0) if metadata.get("deletionTimestamp") else None,
    )


def without_grant(
    holder: TicketHolder, inventory: Inventory | None, has_grant: Callable[[str], bool]
) -> Mapping[str, int]:
    """The tickets that the pod has of a node with this inventory and no grant accounts for, by resource.

    Native devices of the node are none of them: kubelet hands these out to any pod.
    """
    if inventory is None or not inventory.gpus or has_grant(holder.uid):
        return {}
    native = {each.resource for each in inventory.native_resources}
    return {resource: count for resource, count in holder.tickets.items() if resource not in native}


def describe_tickets(tickets: Mapping[str, int]) -> str:
    """The amounts of all resources, for people."""
    return " and ".join(f"{count} {resource}" for resource, count in sorted(tickets.items()))
