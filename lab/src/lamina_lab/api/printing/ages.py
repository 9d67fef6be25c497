"""Ages as kubectl prints them."""

from lamina.ports.kube.moments import seconds_of


def age(text: object, now: float) -> str:
    """The age of a timestamp; `<unknown>` if there is none."""
    then = seconds_of(text) if isinstance(text, str) else None
    return "<unknown>" if then is None else duration(now - then)


def duration(span: float) -> str:
    """As `kubectl get` prints durations: two units at most, the smaller one only while it matters."""
    seconds = int(span)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(0, seconds)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return _years(days)


def _years(days: int) -> str:
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"
