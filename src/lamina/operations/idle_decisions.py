"""What becomes of a pod that may be idle: nothing, a notice, its end, or the withdrawal of a notice. Pure."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from lamina.model.idle import IdlePolicy
from lamina.ports.kube.moments import seconds_of

NOTICE = "lamina.dev/idle-notice"
"""The annotation that says when the share of an idle pod is reclaimed."""
KEEP = "lamina.dev/keep-idle"
"""The annotation with which the owner of a pod keeps it although it is idle."""
STALE_S = 900.0
"""A notice that ended so long ago was given under another policy or before an outage. It is given again."""
_HOUR_S = 3600.0


class IdleStep(Enum):
    NOTHING = auto()
    GIVE_NOTICE = auto()
    WITHDRAW = auto()
    RECLAIM = auto()


def decide(pod: Mapping[str, Any], since: float | None, policy: IdlePolicy, now: float) -> IdleStep:
    """The next step for a pod that has used no GPU `since` then, in seconds since 1970; None if it has."""
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}
    written = str(annotations.get(NOTICE) or "")
    idle = since is not None and now - since >= policy.hours * _HOUR_S
    if not idle or not policy.covers(meta["namespace"]) or str(annotations.get(KEEP)).strip().lower() == "true":
        return IdleStep.WITHDRAW if written else IdleStep.NOTHING
    end = seconds_of(written) if written else None
    if end is None or end > now + policy.notice_s or end < now - STALE_S:
        return IdleStep.GIVE_NOTICE
    return IdleStep.RECLAIM if end <= now else IdleStep.NOTHING
