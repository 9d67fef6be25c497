"""What becomes of a pod that may be idle: nothing, a notice, its end, or the withdrawal of a notice. Pure."""

from collections.abc import Mapping
from typing import Any

from lamina.core.idle import IdlePolicy
from lamina.operations.notices import NoticeStep, NoticeTerms, next_step

NOTICE = "lamina.dev/idle-notice"
"""The annotation that says when the share of an idle pod is reclaimed."""
KEEP = "lamina.dev/keep-idle"
"""The annotation with which the owner of a pod keeps it although it is idle."""
_HOUR_S = 3600.0


def terms(policy: IdlePolicy) -> NoticeTerms:
    return NoticeTerms(NOTICE, KEEP, policy.notice_s)


def decide(pod: Mapping[str, Any], since: float | None, policy: IdlePolicy, now: float) -> NoticeStep:
    """The next step for a pod that has used no GPU `since` then, in seconds since 1970; None if it has."""
    idle = since is not None and now - since >= policy.hours * _HOUR_S
    return next_step(pod, terms(policy), now, due=idle and policy.covers(pod["metadata"]["namespace"]))
