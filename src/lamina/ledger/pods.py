"""A pod with its request, parsed once where the pod enters the controller and passed on from there.

The request is always parsed from the spec: annotations that Lamina itself wrote are hints for people, never authority.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from lamina.configuration import Config
from lamina.core.host_size import HostSize, asked_by
from lamina.core.requests import PodRequest
from lamina.dialects import parse, places, served_by_claim, ticket_holders
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput
from lamina.ports.kube import Object

_FIELDS_THAT_DECIDE_NODES = ("schedulerName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


@dataclass(frozen=True)
class ParsedPod:
    """`request` is None where the pod requests no GPU, or where `problem` says why the request cannot be read."""

    obj: Object
    config: Config
    request: PodRequest | None
    problem: str = ""

    @classmethod
    def of_parts(
        cls,
        obj: Object,
        config: Config,
        request: PodRequest | None,
        problem: str,
        host_size: HostSize,
        ticket_holders: frozenset[str],
    ) -> "ParsedPod":
        """The pod with all that is known of it already."""
        pod = cls(obj, config, request, problem)
        vars(pod).update(host_size=host_size, ticket_holders=ticket_holders)  # as cached_property keeps them
        return pod

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.obj.get("metadata") or {}
        return metadata

    @property
    def uid(self) -> str:
        """Empty for a pod that does not exist yet."""
        return str(self.metadata.get("uid") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def priority(self) -> int:
        return int((self.obj.get("spec") or {}).get("priority") or 0)

    @property
    def nominated_node(self) -> str:
        """The node on which room is made for the pod, by its status; empty for none."""
        return str((self.obj.get("status") or {}).get("nominatedNodeName") or "")

    @property
    def never_preempts(self) -> bool:
        """Whether the pod waits for room rather than have other pods evicted."""
        return (self.obj.get("spec") or {}).get("preemptionPolicy") == "Never"

    @cached_property
    def ticket_holders(self) -> frozenset[str]:
        """The containers that can have a GPU by a grant."""
        return ticket_holders(self.obj, self.config)

    @property
    def version(self) -> str:
        """Its `resourceVersion`; empty for a pod that does not exist yet."""
        return str(self.metadata.get("resourceVersion") or "")

    @property
    def served_by_claim(self) -> bool:
        """Whether a ResourceClaim serves what the pod would have by a grant."""
        return served_by_claim(self.obj, self.config)

    @property
    def foreign_scheduler(self) -> str:
        """The scheduler that places the pod, if Lamina does not extend it; else empty."""
        spec = self.obj.get("spec") or {}
        return "" if places(spec, self.config) else str(spec["schedulerName"])

    @property
    def names_other_scheduler(self) -> str:
        """The same words about its scheduler."""
        return (
            f"names the scheduler {self.foreign_scheduler}, which Lamina does not serve"
            if self.foreign_scheduler
            else ""
        )

    @property
    def gates(self) -> str:
        """The gates that hold the pod before its scheduling, in words that follow its name; empty without any."""
        gates = [str(gate.get("name")) for gate in (self.obj.get("spec") or {}).get("schedulingGates") or ()]
        return f"is held by the gate{'s' if len(gates) > 1 else ''} {' and '.join(gates)}" if gates else ""

    @cached_property
    def not_placed(self) -> str:
        """Why Lamina does not place the pod, which requests GPUs, in words that follow its name; else empty."""
        if self.request is None and not self.problem and not self.served_by_claim:
            return ""
        return self.held_back or self.names_other_scheduler

    @property
    def held_back(self) -> str:
        """What keeps the pod from every scheduler, in words that follow its name; else empty."""
        return "is being deleted" if self.metadata.get("deletionTimestamp") else self.gates

    @cached_property
    def template(self) -> bytes:
        """What decides on which nodes kube-scheduler allows the pod; equal for pods that may go to the same nodes."""
        spec = self.obj["spec"]
        containers = (*(spec.get("initContainers") or ()), *spec["containers"])
        resources = [container.get("resources") for container in containers]
        parts = [*[spec.get(field) for field in _FIELDS_THAT_DECIDE_NODES], resources]
        return msgspec.json.encode(parts, order="sorted")

    @cached_property
    def host_size(self) -> HostSize:
        """The CPU and memory that the pod takes of its node."""
        return asked_by(self.obj)

    @cached_property
    def group(self) -> GroupName | None:
        """The group that the pod belongs to."""
        return group_of(self.obj, self.config)


def parse_pod(obj: Object, config: Config) -> ParsedPod:
    """The pod with its request under this configuration."""
    try:
        return ParsedPod(obj, config, parse(obj, config))
    except BadInput as problem:
        return ParsedPod(obj, config, None, str(problem))
