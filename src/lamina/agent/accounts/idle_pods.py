"""The pods whose shares may be reclaimed, because they have used no GPU for long. Pure."""

from collections.abc import Iterable

from lamina.agent.accounts.book import BusyCounter
from lamina.core.idle import MAX_IDLE, IdlePod, IdlePolicy

_HOUR_S = 3600.0


def idle_pods(counters: Iterable[BusyCounter], policy: IdlePolicy, now: float) -> tuple[IdlePod, ...]:
    """Of those whose use is known, the longest idle first. `now` is since 1970."""
    if not policy.hours:
        return ()
    used: dict[str, float] = {}
    for counter in counters:
        used[counter.pod_uid] = max(used.get(counter.pod_uid, 0.0), counter.changed_at)
    idle = [IdlePod(pod_uid=uid, since=int(at)) for uid, at in used.items() if now - at >= policy.hours * _HOUR_S]
    return tuple(sorted(idle, key=lambda pod: (pod.since, pod.pod_uid))[:MAX_IDLE])
