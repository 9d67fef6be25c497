"""The pods that wait for a node: which is next, and when one that fitted nowhere is tried again.

Three places, as in kube-scheduler: ready to be tried, in the hands of the scheduler, and parked. A parked pod comes
back when something happened that may help it, else after its back-off. Time is passed in, in seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube.moments import seconds_of

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 10.0


@dataclass(slots=True)
class Waiting:
    """One pod that waits. `attempts` since something last happened for it; `due` is when its back-off ends."""

    pod: Object
    arrival: int
    attempts: int = 0
    due: float | None = None
    error: bool = False
    helped_at: int = 0

    @property
    def order(self) -> tuple[int, float, int]:
        """Higher priority first, then the older pod; births are dated in whole seconds, so then the first to come."""
        priority = int(objects.spec(self.pod).get("priority") or 0)
        born = seconds_of(objects.meta(self.pod).get("creationTimestamp", "")) or 0.0
        return -priority, born, self.arrival


class Backlog:
    """Pods by uid. What is in nobody's hands is either ready (`due` is None) or parked until `due`."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._in_hand: dict[str, Waiting] = {}
        self._arrivals = 0
        self._events = 0  # how often something helpful happened: one in hand may have just missed it

    def put(self, pod: Object, *, helps: bool) -> None:
        """Note a pod that wants a node, in its newest state. `helps`: its own change may make it fit now."""
        uid = objects.uid(pod)
        if uid in self._in_hand:
            entry = self._in_hand[uid]
            entry.pod = pod
            if helps:
                entry.helped_at = -1
            return
        self._arrivals += 1
        entry = self._waiting.setdefault(uid, Waiting(pod, self._arrivals))
        entry.pod = pod
        if helps:
            _help(entry)

    def holds(self, uid: str) -> bool:
        """Whether the pod still wants a node, in hand or not."""
        return uid in self._waiting or uid in self._in_hand

    def drop(self, uid: str) -> None:
        """Forget a pod: gone, or placed."""
        self._waiting.pop(uid, None)
        self._in_hand.pop(uid, None)

    def take(self, now: float) -> Waiting | None:
        """The next pod to try, which is then in the caller's hands; None while nobody is ready."""
        ready = [entry for entry in self._waiting.values() if entry.due is None or entry.due <= now]
        if not ready:
            return None
        entry = min(ready, key=lambda each: each.order)
        uid = objects.uid(entry.pod)
        del self._waiting[uid]
        self._in_hand[uid] = entry
        entry.helped_at = self._events
        return entry

    def park(self, entry: Waiting, now: float, *, error: bool = False) -> None:
        """Give back a pod that found no node. It is ready again at once where something helpful happened meanwhile,
        except after an `error`: that says nothing about the cluster."""
        uid = objects.uid(entry.pod)
        if self._in_hand.pop(uid, None) is None:
            return  # gone meanwhile
        entry.attempts += 1
        entry.error = error
        entry.due = now + min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (entry.attempts - 1))
        if entry.helped_at != self._events and not error:
            _help(entry)
        self._waiting[uid] = entry

    def something_happened(self, *, only: Callable[[Waiting], bool] = lambda entry: True) -> None:
        """Something may let parked pods fit: try them now, and be quick about the attempts after that."""
        self._events += 1
        for entry in self._waiting.values():
            if only(entry):
                _help(entry)

    def next_due(self) -> float | None:
        """When the next back-off ends; None where nobody is parked."""
        return min((entry.due for entry in self._waiting.values() if entry.due is not None), default=None)


def _help(entry: Waiting) -> None:
    entry.attempts = 0
    entry.due = None
