"""Pods with ResourceClaims of GPUs that wait, or whose claims are refused on their node. Pure."""

from collections.abc import Iterator

from lamina.core.pod_status import is_over
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.report.pods import pod_gpus
from lamina.report.reasons import CREATED, waiting_because

_SHOWN = 5


def claim_pods(cluster: ClusterView) -> Iterator[Finding]:
    """One finding where pods have such claims. The cluster's claims have been read."""
    pods = [pod for pod in cluster.pods if not is_over(pod) and pod_gpus(cluster, pod).claims]
    waiting = sorted(_name(pod) for pod in pods if _waits(cluster, pod))
    if waiting:
        more = len(waiting) - _SHOWN
        names = f"{', '.join(waiting[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"
        fix = "`lamina why POD` says what each of them waits for, or why its claim is refused"
        yield Finding("pods with claims", State.WARNING, f"{len(waiting)} of {len(pods)} wait: {names}", fix)
    elif pods:
        yield Finding("pods with claims", State.OK, f"none of {len(pods)} waits")


def _waits(cluster: ClusterView, pod: Object) -> bool:
    return waiting_because(cluster, pod) not in ("", CREATED)


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
