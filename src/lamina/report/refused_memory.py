"""The last time that a container of a pod was refused GPU memory, from the events that agents write."""

from collections.abc import Iterable, Iterator

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
    line = last_refusals(listing.items).get((meta["namespace"], meta["uid"]))
    return iter([line] if line else ())


def last_refusals(events: Iterable[Object]) -> dict[tuple[str, str], str]:
    """The line of each pod that was refused memory lately, by its namespace and UID."""
    last: dict[tuple[str, str], Object] = {}
    for event in events:
        if event.get("reason") == REASON and (event.get("source") or {}).get("component") == _COMPONENT:
            involved = event.get("involvedObject") or {}
            # An event is about objects of its own namespace, whatever it names.
            pod = event["metadata"].get("namespace", ""), str(involved.get("uid"))
            if pod not in last or _moment(event) >= _moment(last[pod]):
                last[pod] = event
    return {pod: f"Refused at {_moment(event)}: {event.get('message', '')}." for pod, event in last.items()}


def _moment(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("firstTimestamp") or "")
