"""Filter's answer reduced to the node that the policy prefers.

kube-scheduler then neither asks for scores nor compares nodes, which saves it and the controller two requests and most
of the work for a pod. It would choose that node anyway, unless the pod prefers other nodes, or some of the nodes have
a taint with PreferNoSchedule. In these cases the answer stays whole. It also does after an answer of one node that no
bind followed: another extender or a plugin of kube-scheduler may refuse the node.
"""

from collections.abc import Mapping
from typing import Any

from lamina.controller.pending_pods import PendingPods
from lamina.controller.scheduling.scheduler import FilterResult, Scheduler
from lamina.ledger.pods import ParsedPod

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


class BestNode:
    """`discouraged` are the nodes that have a taint with PreferNoSchedule."""

    def __init__(
        self, scheduler: Scheduler, pending: PendingPods, discouraged: set[str] | frozenset[str] = frozenset()
    ) -> None:
        self._scheduler = scheduler
        self._pending = pending
        self._discouraged = discouraged

    def choose(self, pod: ParsedPod, result: FilterResult) -> FilterResult:
        """The result with the best of its nodes alone, where nothing but the policy tells them apart."""
        known = self._pending.tried(pod)
        if len(result.fitting) < 2 or not pod.uid or known.sent_to_one or self._has_preferences(pod, result):
            return result
        scores = self._scheduler.scores(pod, result.fitting)
        if not scores.values.any():
            return result  # the policy prefers none of them, such as nodes whose devices kubelet allocates
        known.sent_to_one = True
        return FilterResult(fitting=[scores.best], failed=result.failed, unresolvable=result.unresolvable)

    def observe_bind(self, uid: str) -> None:
        """kube-scheduler has accepted the node."""
        if (known := self._pending.of(uid)) is not None:
            known.sent_to_one = False

    def _has_preferences(self, pod: ParsedPod, result: FilterResult) -> bool:
        """Whether kube-scheduler knows preferences among these nodes. Places of a group are planned, not preferred."""
        if pod.request is None or pod.group is not None or prefers_nodes(pod.obj.get("spec") or {}):
            return True
        discouraged = self._discouraged.intersection(result.fitting) if self._discouraged else ()
        return 0 < len(discouraged) < len(result.fitting)


def prefers_nodes(spec: Mapping[str, Any]) -> bool:
    """Whether the spec of a pod prefers nodes, by affinity or topology spread, beyond those that it requires."""
    affinity = spec.get("affinity") or {}
    if any((affinity.get(kind) or {}).get(_PREFERRED) for kind in _AFFINITIES):
        return True
    spread = spec.get("topologySpreadConstraints") or ()
    return any(constraint.get("whenUnsatisfiable") == "ScheduleAnyway" for constraint in spread)
