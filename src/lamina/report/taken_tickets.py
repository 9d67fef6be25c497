"""Tickets that pods without a grant have: kube-scheduler offers their nodes to no pod that needs more than the rest."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lamina.configuration import Config
from lamina.core.gpus import Inventory
from lamina.core.host_size import offered_of
from lamina.core.pod_status import is_over
from lamina.core.requests import PodRequest
from lamina.dialects import dialect_named, tickets_requested
from lamina.dialects.registry import name_index
from lamina.ledger.ticket_holders import TicketHolder, describe_tickets
from lamina.placement import Cause, Hosts, Miss
from lamina.ports.kube import Object


class TakenTickets(NamedTuple):
    """Pods without a grant with the tickets that they have, and what else counts: all pods, and what nodes offer."""

    holders: list[tuple[TicketHolder, Mapping[str, int]]]
    pods: list[Object]
    inventories: Mapping[str, Inventory]
    hosts: Hosts | None
    config: Config

    def misses(self, pod: Object, request: PodRequest) -> dict[str, Miss]:
        """The nodes that have too few tickets left for the pod because of them. The reason names no pod of others."""
        wanted = _wanted(pod, request, self.config)
        found = {}
        for node in sorted({holder.node for holder, _ in self.holders}):
            for resource, amount in wanted.items():
                offered = self._offered(node, resource)
                if amount > offered - self._taken(node, resource):
                    without = sum(each.get(resource, 0) for holder, each in self.holders if holder.node == node)
                    reason = f"pods without a grant have {without} of {offered} {resource}"
                    found[node] = Miss(reason, Cause.SLOTS, False, (0, 0, 0.0))
        return found

    def lines(self) -> Iterator[str]:
        """A line for each such pod."""
        for holder, tickets in self.holders:
            what = f"{describe_tickets(tickets)} of node {holder.node}"
            yield f"  pod {holder.name} has {what} without a grant; delete it"

    def line_of(self, pod: Object) -> Iterator[str]:
        """What the pod itself takes without a grant."""
        for holder, tickets in self.holders:
            if holder.uid == pod["metadata"].get("uid"):
                what = f"{describe_tickets(tickets)} of node {holder.node}"
                yield f"  Lamina did not place it: it has {what} and no grant, so it gets no GPU, and others not these"

    def _offered(self, node: str, resource: str) -> int:
        found = None if self.hosts is None else self.hosts.node(node)
        if found is not None:
            return offered_of(found, resource)
        return sum(gpu.slots for gpu in self.inventories[node].gpus if gpu.healthy and gpu.by_grant)

    def _taken(self, node: str, resource: str) -> int:
        here = (pod for pod in self.pods if pod["spec"].get("nodeName") == node and not is_over(pod))
        return sum(tickets_requested(pod, self.config).get(resource, 0) for pod in here)


def _wanted(pod: Object, request: PodRequest, config: Config) -> Mapping[str, int]:
    """The tickets of the pod, also where admission has not filled them in yet."""
    if tickets := tickets_requested(pod, config):
        return tickets
    dialect = dialect_named(request.dialect)
    ticket = name_index(config).names[dialect.name].ticket if dialect else ""
    return {ticket: 1} if ticket else {}
