"""Moments as Kubernetes writes them; seconds since 1970 inside."""

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float | None:
    """None for anything that is no timestamp."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, TypeError):
        return None
