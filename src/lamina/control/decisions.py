"""The extender's answers to filter and prioritise, from the ledger and the pod as it is written.

The pod is parsed again each time: annotations are hints for people, never authority.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.quotas import Amounts, Quotas, asked, excess
from lamina.dialects import parse
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
        beyond = self.over_quota(pod, asked(request))
        if beyond:
            return Filtered(fitting=[], error=beyond, summary=beyond)
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
        """How well each node suits the pod, from 0 to HIGHEST_SCORE."""
        try:
            request = parse(pod, self._configuration.value)
        except BadInput:
            request = None
        return {name: self._score(request, _uid(pod), name) for name in nodes}

    def place(self, request: PodRequest, pod_uid: str, node: str) -> Placement | Misfit | None:
        """The shares that the pod would get on the node now; None where the node offers no GPUs."""
        state = self._capacity.state(node, without=pod_uid)
        return None if state is None else fit(request, state)

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

    def _score(self, request: PodRequest | None, pod_uid: str, node: str) -> int:
        if request is None:
            return 0
        answer = self.place(request, pod_uid, node)
        return min(HIGHEST_SCORE, max(0, round(answer.score))) if isinstance(answer, Placement) else 0


def _uid(pod: Mapping[str, Any]) -> str:
    return str((pod.get("metadata") or {}).get("uid") or "")
