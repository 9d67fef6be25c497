"""Why a pod, or the pods of a workload such as a Deployment, are refused or pending."""

from collections.abc import Sequence
from typing import NamedTuple

from lamina.dialects import template_warnings
from lamina.errors import BadInput
from lamina.ports.kube import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Kube,
    NotFound,
    Object,
    Resource,
)
from lamina.ports.kube.selectors import pod_labels
from lamina.report import reasons
from lamina.report.cluster_view import ClusterView
from lamina.report.device_taint_rules import taint_lines
from lamina.report.refusals import last_refusal

_KINDS: dict[str, Resource] = {
    name: resource
    for resource, short in (
        (DEPLOYMENTS, "deploy"),
        (REPLICA_SETS, "rs"),
        (STATEFUL_SETS, "sts"),
        (DAEMON_SETS, "ds"),
        (JOBS, "job"),
    )
    for name in (short, resource.kind.lower(), resource.plural)
}
_SHOWN_REASONS = 5
_SHOWN_PODS = 5


class Explained(NamedTuple):
    """The lines of `lamina why`. `waits` if a pod is pending, refused or cannot start; `runs` if all containers run."""

    lines: Sequence[str]
    waits: bool
    runs: bool


async def explain(kube: Kube, cluster: ClusterView, namespace: str, name: str) -> Explained:
    """The lines of `lamina why` about a pod, given by its name or as pod/name, or about a workload. Raises BadInput."""
    if "/" in name and not name.startswith(("pod/", "pods/")):
        return await why(kube, cluster, namespace, name)
    pod = reasons.pod_named(cluster, namespace, name.rpartition("/")[2])
    lines = [*reasons.why_pod(cluster, pod)]
    lines += await last_refusal(kube, pod) if pod["spec"].get("nodeName") else await taint_lines(kube, [pod])
    return Explained(lines, bool(reasons.waiting_because(cluster, pod)), reasons.all_run(pod))


async def why(kube: Kube, cluster: ClusterView, namespace: str, which: str) -> Explained:
    """The lines of `lamina why` about a workload, given as kind/name. Raises BadInput where there is no such one."""
    resource, workload = await find_workload(kube, namespace, which)
    name, pods = workload["metadata"]["name"], await pods_of(kube, workload)
    warnings = [*template_warnings(workload, namespace, cluster.config)]
    waiting = _waiting(cluster, pods)
    title = f"{resource.kind} {name}"
    lines = [f"{title}: {warning}." for warning in warnings]
    if not waiting and (pods or not warnings):
        lines.append(f"{title} has {len(pods)} pod{'' if len(pods) == 1 else 's'}, and none is pending.")
    shown = list(waiting.values())[:_SHOWN_REASONS]
    for first, *others in shown:
        lines += reasons.why(cluster, namespace, first)
        lines += [_of_others(others)] if others else []
    if more := sum(map(len, waiting.values())) - sum(map(len, shown)):
        lines.append(f"{more} more {'pod' if more == 1 else 'pods'} of {title} {'is' if more == 1 else 'are'} pending.")
    waits = bool(warnings or waiting)
    runs = not waits and all(map(reasons.all_run, pods))
    return Explained([*lines, *await taint_lines(kube, pods)], waits, runs)


async def find_workload(kube: Kube, namespace: str, which: str) -> tuple[Resource, Object]:
    """The workload that is given as kind/name. Raises BadInput where there is no such one."""
    kind, _, name = which.partition("/")
    resource = _KINDS.get(kind.lower().partition(".")[0])
    if resource is None:
        known = ", ".join(dict.fromkeys(each.kind for each in _KINDS.values()))
        raise BadInput(f"{kind} is not a kind of workload; known are Pod, {known}")
    try:
        return resource, await kube.get(resource, name, namespace=namespace)
    except NotFound as error:
        raise BadInput(f"there is no {resource.kind} {name} in namespace {namespace}") from error


async def pods_of(kube: Kube, workload: Object) -> list[Object]:
    """The pods that the workload's selector matches."""
    labels = pod_labels(workload)
    return (await kube.list(PODS, namespace=workload["metadata"]["namespace"], labels=labels)).items if labels else []


def _waiting(cluster: ClusterView, pods: list[Object]) -> dict[str, list[str]]:
    """The names of the pods that are pending or cannot start, by reason."""
    known = {pod["metadata"]["uid"] for pod in cluster.pods}
    found: dict[str, list[str]] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        if pod["metadata"]["uid"] in known and (reason := reasons.waiting_because(cluster, pod)):
            found.setdefault(reason, []).append(pod["metadata"]["name"])
    return found


def _of_others(names: Sequence[str]) -> str:
    """The sentence about pods whose reason was given."""
    more = len(names) - _SHOWN_PODS
    shown = ", ".join(names[:_SHOWN_PODS])
    return f"The same holds for {shown}{f' and {more} more' if more > 0 else ''}."
