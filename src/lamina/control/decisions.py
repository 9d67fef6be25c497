"""The extender's answers to filter and prioritise, from the ledger and the pod as it is written.

The pod is parsed again each time: annotations are hints for people, never authority.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.quotas import Amounts, Quotas, asked, excess
from lamina.dialects import parse, unseen_by_admission
from lamina.errors import BadInput
from lamina.model.requests import PodRequest
from lamina.placement import Misfit, NodeState, Placement, explain, fit

HIGHEST_SCORE = 10
"""kube-scheduler's MaxExtenderPriority."""
_NO_GPUS = "no GPU is offered on this node"


class Filtered(Struct, kw_only=True):
    """Nodes that fit, and why others do not: `failed` may fit once other pods leave, `unresolvable` never.

    `error` is set instead where the pod fits nowhere because of itself. `summary` is for people, in one text.
    """

    fitting: list[str]
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    error: str = ""
    summary: str = ""


class Decisions:
    """Reads the ledger and changes nothing."""

    def __init__(self, capacity: Capacity, quotas: Quotas, configuration: Configuration) -> None:
        self._capacity = capacity
        self._quotas = quotas
        self._configuration = configuration

    def filter(self, pod: Mapping[str, Any], nodes: list[str]) -> Filtered:
        """Which of `nodes` can take the pod; all of them where it asks no GPU."""
        try:
            request = parse(pod, self._configuration.value)
        except BadInput as problem:
            return Filtered(fitting=[], error=str(problem), summary=str(problem))
        if request is None:
            return Filtered(fitting=nodes)
        refusal = self.refusal(pod, request) or self.over_quota(pod, asked(request))
        if refusal:
            return Filtered(fitting=[], error=refusal, summary=refusal)
        result = Filtered(fitting=[], failed={}, unresolvable={})
        states: list[NodeState] = []
        for name in nodes:
            state = self._capacity.state(name, without=_uid(pod))
            if state is None:
                result.unresolvable[name] = _NO_GPUS
                continue
            states.append(state)
            answer = fit(request, state)
            if isinstance(answer, Placement):
                result.fitting.append(name)
            elif answer.lasting:
                result.unresolvable[name] = answer.reason
            else:
                result.failed[name] = answer.reason
        if not result.fitting:
            result.summary = explain(request, states).summary
        return result

    def scores(self, pod: Mapping[str, Any], nodes: Iterable[str]) -> dict[str, int]:
        """How well each node suits the pod among these nodes: 0, and HIGHEST_SCORE for the best alone.

        Stretched from the worst to the best, because one pod is a small part of a node: in tenths of what is taken,
        nearly all nodes would be equal, and neither policy would be seen.
        """
        try:
            request = parse(pod, self._configuration.value)
        except BadInput:
            request = None
        worth = {name: self._worth(request, _uid(pod), name) for name in nodes}
        fitting = [value for value in worth.values() if value is not None]
        low, high = min(fitting, default=0.0), max(fitting, default=0.0)
        return {
            name: 0 if value is None or low == high else int(HIGHEST_SCORE * (value - low) / (high - low))
            for name, value in worth.items()
        }

    def place(self, request: PodRequest, pod_uid: str, node: str) -> Placement | Misfit | None:
        """The shares that the pod would get on the node now; None where the node offers no GPUs."""
        state = self._capacity.state(node, without=pod_uid)
        return None if state is None else fit(request, state)

    def refusal(self, pod: Mapping[str, Any], request: PodRequest) -> str:
        """The sentence that says why no node may take the pod as it is, or nothing."""
        return unseen_by_admission(pod, request, self._configuration.value)

    def over_quota(self, pod: Mapping[str, Any], amounts: Amounts) -> str:
        """The sentence that says which quota of its namespace the pod exceeds with these amounts, or nothing."""
        config = self._configuration.value
        namespace = pod["metadata"].get("namespace", "")
        ledger = self._capacity.ledger
        return excess(
            self._quotas.of(namespace, config),
            lambda: ledger.taken_in(namespace, without=_uid(pod)),
            amounts,
            config,
        )

    def _worth(self, request: PodRequest | None, pod_uid: str, node: str) -> float | None:
        """The policy's score of the node, or None where the pod does not fit."""
        answer = None if request is None else self.place(request, pod_uid, node)
        return answer.score if isinstance(answer, Placement) else None


def _uid(pod: Mapping[str, Any]) -> str:
    return str((pod.get("metadata") or {}).get("uid") or "")
