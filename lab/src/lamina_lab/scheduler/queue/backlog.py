"""Pods that wait for a node: which one is next, and when an unschedulable one is tried again.

As in kube-scheduler, a pod is ready, in progress, or parked. A parked pod is retried after an event that may help it,
or after its back-off. Times are passed in, in seconds.
"""

from collections.abc import Callable

from msgspec import Struct

from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.kubernetes import objects

FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 10.0


class WaitingPod(Struct):
    """A waiting pod. `attempts` since the last helpful event; `due` is the end of its back-off."""

    pod: Object
    arrival: int
    attempts: int = 0
    due: float | None = None
    error: bool = False
    taken_at: int = 0

    @property
    def order(self) -> tuple[int, float, int]:
        """Higher priority first, then the older pod. Creation times are in whole seconds, so arrival breaks ties."""
        priority = int(objects.spec(self.pod).get("priority") or 0)
        born = seconds_of(objects.meta(self.pod).get("creationTimestamp", "")) or 0.0
        return -priority, born, self.arrival


class Backlog:
    """Pods by uid. A pod that is not in progress is either ready (`due` is None) or parked until `due`."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingPod] = {}
        self._in_progress: dict[str, WaitingPod] = {}
        self._arrivals = 0
        self._events = 0  # counts helpful events, so that a pod in progress does not miss one

    def put(self, pod: Object, *, retry_now: bool) -> None:
        """Note the newest state of a pod that needs a node. With `retry_now`, its own change may make it fit."""
        uid = objects.uid(pod)
        if uid in self._in_progress:
            entry = self._in_progress[uid]
            entry.pod = pod
            if retry_now:
                entry.taken_at = -1
            return
        self._arrivals += 1
        entry = self._waiting.setdefault(uid, WaitingPod(pod, self._arrivals))
        entry.pod = pod
        if retry_now:
            _retry_now(entry)

    def holds(self, uid: str) -> bool:
        """Whether the pod still needs a node, in progress or not."""
        return uid in self._waiting or uid in self._in_progress

    def drop(self, uid: str) -> None:
        """Forget a pod that is deleted or placed."""
        self._waiting.pop(uid, None)
        self._in_progress.pop(uid, None)

    def take(self, now: float) -> WaitingPod | None:
        """The next pod to try, which is then in progress; None if no pod is ready."""
        ready = [entry for entry in self._waiting.values() if entry.due is None or entry.due <= now]
        if not ready:
            return None
        entry = min(ready, key=lambda waiting: waiting.order)
        uid = objects.uid(entry.pod)
        del self._waiting[uid]
        self._in_progress[uid] = entry
        entry.taken_at = self._events
        return entry

    def park(self, entry: WaitingPod, now: float, *, error: bool = False) -> None:
        """Return a pod that found no node. It is ready at once if a helpful event happened in the meantime,
        except after an `error`, which says nothing about the cluster.
        """
        uid = objects.uid(entry.pod)
        if self._in_progress.pop(uid, None) is None:
            return  # deleted in the meantime
        entry.attempts += 1
        entry.error = error
        entry.due = now + min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (entry.attempts - 1))
        if entry.taken_at != self._events and not error:
            _retry_now(entry)
        self._waiting[uid] = entry

    def retry_parked(self, *, only: Callable[[WaitingPod], bool] = lambda entry: True) -> None:
        """Parked pods may fit now: retry them at once, and start their back-off over."""
        self._events += 1
        for entry in self._waiting.values():
            if only(entry):
                _retry_now(entry)

    def next_due(self) -> float | None:
        """When the next back-off ends; None if no pod is parked."""
        return min((entry.due for entry in self._waiting.values() if entry.due is not None), default=None)


def _retry_now(entry: WaitingPod) -> None:
    entry.attempts = 0
    entry.due = None
