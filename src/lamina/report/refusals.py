"""What was refused: GPU memory to containers, by the events that agents write, and pods to workloads, by admission.

Workloads whose pods are refused have no pods, so a list of pods alone would not show them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lamina.core.config import Config
from lamina.dialects import check_workload, template_refusal
from lamina.errors import BadInput
from lamina.ports.kube import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Kube,
    NotFound,
    Object,
    Refused,
)
from lamina.report.pods import PodRow, Selected, refused_row

REASON = "OutOfGpuMemory"
"""The reason of the events of `lamina.agent.limits.memory_refusals`."""
_COMPONENT = "lamina-agent"
LISTED = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS)
_OWNERS = {resource.kind for resource in LISTED}


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


async def refused_workloads(
    kube: Kube, config: Config, namespace: str | None, selected: Selected | None = None
) -> tuple[list[PodRow], str]:
    """The rows of one namespace or of all (None), and a sentence about those that cannot be read, or nothing."""
    rows: list[PodRow] = []
    forbidden: list[str] = []
    for resource in LISTED:
        try:
            workloads = (await kube.list(resource, namespace=namespace or "")).items
        except NotFound:
            continue  # a lab serves some kinds only
        except Refused:
            forbidden.append(resource.plural)
            continue
        rows += _rows(resource.kind.lower(), workloads, config, selected)
    sentence = f"you may not list {', '.join(forbidden)}, so those whose pods are refused are missing"
    return rows, sentence if forbidden else ""


def _rows(kind: str, workloads: list[Object], config: Config, selected: Selected | None) -> Iterator[PodRow]:
    for workload in sorted(workloads, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"])):
        meta = workload["metadata"]
        if not _wants_pods(workload) or not (selected is None or selected(meta.get("labels") or {})):
            continue
        if reason := _refusal(workload, config):
            yield refused_row(meta["namespace"], f"{kind}/{meta['name']}", reason)


def _refusal(workload: Object, config: Config) -> str:
    try:
        check_workload(workload)
    except BadInput:
        return ""
    return template_refusal(workload, workload["metadata"]["namespace"], config)


def _wants_pods(workload: Object) -> bool:
    """Whether it is to have pods, and no other workload of the list makes it have them."""
    owners: list[dict[str, Any]] = workload["metadata"].get("ownerReferences") or []
    if any(owner.get("kind") in _OWNERS for owner in owners):
        return False
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    ended = any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return spec.get("replicas") != 0 and not spec.get("suspend") and not ended
