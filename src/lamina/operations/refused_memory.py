"""The last time that a container of a pod was refused GPU memory, from the events that agents write."""

from collections.abc import Iterator

from lamina.ports.kube import EVENTS, Kube, NotFound, Object, Refused

REASON = "OutOfGpuMemory"
"""The reason of the events of `lamina.agent.limits.memory_refusals`."""
_COMPONENT = "lamina-agent"


async def last_refusal(kube: Kube, pod: Object) -> Iterator[str]:
    """A line about the last refusal; none where there was none lately, or where events may not be read."""
    meta = pod["metadata"]
    try:
        listing = await kube.list(EVENTS, namespace=meta["namespace"], fields=f"involvedObject.name={meta['name']}")
    except (Refused, NotFound):
        return iter(())
    found = [event for event in listing.items if _is_of(event, meta["uid"])]
    if not found:
        return iter(())
    last = max(found, key=_moment)
    return iter([f"Refused at {_moment(last)}: {last.get('message', '')}."])


def _is_of(event: Object, uid: str) -> bool:
    source = (event.get("source") or {}).get("component")
    involved = event.get("involvedObject") or {}
    return event.get("reason") == REASON and source == _COMPONENT and involved.get("uid") == uid


def _moment(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("firstTimestamp") or "")
