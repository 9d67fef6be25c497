"""Why a pod, or the pods of a workload such as a Deployment, are refused or pending."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from lamina.core.workloads import Workload, workload_of
from lamina.dialects import template_warnings
from lamina.errors import BadInput
from lamina.name_hints import nearest
from lamina.ports.kube import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Kube,
    NotFound,
    Object,
    Refused,
    Resource,
)
from lamina.ports.kube.selectors import pod_labels
from lamina.report import reasons
from lamina.report.cluster_view import ClusterView
from lamina.report.device_taint_rules import taint_lines
from lamina.report.pod_answers import PodAnswer, pod_answer
from lamina.report.refusals import last_refusal
from lamina.report.remedies import WaysOut

_SHORT = {
    "deploy": DEPLOYMENTS,
    "rs": REPLICA_SETS,
    "sts": STATEFUL_SETS,
    "ds": DAEMON_SETS,
    "job": JOBS,
    "cj": CRON_JOBS,
}
_KINDS: dict[str, Resource] = {
    name: resource for short, resource in _SHORT.items() for name in (short, resource.kind.lower(), resource.plural)
}
_SHOWN_REASONS = 5
_SHOWN_PODS = 5


class Explained(NamedTuple):
    """The answer of `lamina why`: about pods, one for each reason, and the lines for people.

    `waits` if a pod is pending, refused or cannot start; `runs` if all containers run.
    """

    pods: Sequence[PodAnswer]
    lines: Sequence[str]
    waits: bool
    runs: bool


async def explain(kube: Kube, cluster: ClusterView, namespace: str, name: str) -> Explained:
    """The answer about a pod, given by its name or as pod/name, or about a workload. Raises BadInput."""
    if "/" in name and not name.startswith(("pod/", "pods/")):
        return await why(kube, cluster, namespace, name)
    name = name.rpartition("/")[2]
    pod = reasons.pod_named(cluster, namespace, name)
    if pod is None:
        raise await no_such_pod(kube, namespace, name, _names_in(cluster, namespace))
    answer = pod_answer(cluster, pod, WaysOut(cluster))
    more = await last_refusal(kube, pod) if pod["spec"].get("nodeName") else await taint_lines(kube, [pod])
    return Explained(
        [answer],
        [*answer.lines, *more, *answer.help_lines],
        bool(reasons.waiting_because(cluster, pod)),
        runs=reasons.all_run(pod),
    )


async def why(kube: Kube, cluster: ClusterView, namespace: str, which: str) -> Explained:
    """The answer about a workload, given as kind/name. Raises BadInput where there is no such one."""
    resource, workload = await find_workload(kube, namespace, which)
    name, pods = workload["metadata"]["name"], await pods_of(kube, workload)
    warnings = [*template_warnings(workload, namespace, cluster.config)]
    waiting = _waiting(cluster, pods)
    title = f"{resource.kind} {name}"
    lines = [f"{title}: {warning}." for warning in warnings]
    if not waiting and (pods or not warnings):
        lines.append(f"{title} has {len(pods)} pod{'' if len(pods) == 1 else 's'}, and none is pending.")
    shown = list(waiting.values())[:_SHOWN_REASONS]
    answers, ways_out = [], WaysOut(cluster)
    for first, *others in shown:
        answer = pod_answer(cluster, first, ways_out)
        answers.append(answer)
        lines += answer.lines
        lines += [_of_others([each["metadata"]["name"] for each in others])] if others else []
    if more := sum(map(len, waiting.values())) - sum(map(len, shown)):
        lines.append(f"{more} more {'pod' if more == 1 else 'pods'} of {title} {'is' if more == 1 else 'are'} pending.")
    lines += answers[0].help_lines if answers else ()
    waits = bool(warnings or waiting)
    runs = not waits and all(map(reasons.all_run, pods))
    return Explained(answers, [*lines, *await taint_lines(kube, pods)], waits, runs)


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
        await check_namespace(kube, namespace)
        raise BadInput(f"there is no {resource.kind} {name} in namespace {namespace}") from error


async def no_such_pod(kube: Kube, namespace: str, name: str, others: Collection[str] = ()) -> BadInput:
    """What is wrong with the name of a pod that does not exist: there is no such namespace either, or the name is that
    of a workload, or resembles that of one of the `others` in the namespace."""
    if not others:
        await check_namespace(kube, namespace)
    hint = nearest(name, others)
    for short, resource in _SHORT.items():
        try:
            await kube.get(resource, name, namespace=namespace)
        except (NotFound, Refused):
            continue
        hint = f"; did you mean {short}/{name}?"
        break
    return BadInput(f"there is no pod {name} in namespace {namespace}{hint}")


async def check_namespace(kube: Kube, namespace: str) -> None:
    """For commands that found nothing in a namespace: raises BadInput where there is no such one, as far as that may be
    read."""
    try:
        await kube.get(NAMESPACES, namespace)
    except NotFound as error:
        raise BadInput(f"there is no namespace {namespace}; `kubectl get namespaces` lists them") from error
    except Refused:
        return


async def pods_of(kube: Kube, workload: Object) -> list[Object]:
    """The pods that the workload's selector matches. A CronJob has none, so its pods are known by their Jobs."""
    name, namespace = workload["metadata"]["name"], workload["metadata"]["namespace"]
    if "jobTemplate" in workload["spec"]:
        pods = (await kube.list(PODS, namespace=namespace)).items
        return [pod for pod in pods if workload_of(pod) == Workload(CRON_JOBS.kind, name)]
    labels = pod_labels(workload)
    return (await kube.list(PODS, namespace=namespace, labels=labels)).items if labels else []


def _waiting(cluster: ClusterView, pods: list[Object]) -> dict[str, list[Object]]:
    """The pods of the view among these that are pending or cannot start, by reason."""
    named = {pod["metadata"]["uid"] for pod in pods}
    found: dict[str, list[Object]] = {}
    for pod in sorted(cluster.pods, key=lambda pod: str(pod["metadata"]["name"])):
        if pod["metadata"]["uid"] in named and (reason := reasons.waiting_because(cluster, pod)):
            found.setdefault(reason, []).append(pod)
    return found


def _names_in(cluster: ClusterView, namespace: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.pods if pod["metadata"]["namespace"] == namespace]


def _of_others(names: Sequence[str]) -> str:
    """The sentence about pods whose reason was given."""
    more = len(names) - _SHOWN_PODS
    shown = ", ".join(names[:_SHOWN_PODS])
    return f"The same holds for {shown}{f' and {more} more' if more > 0 else ''}."
