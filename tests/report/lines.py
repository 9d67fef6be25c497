"""The lines of `lamina why` about a pod of a view."""

from collections.abc import Iterator

from lamina.report.cluster_view import ClusterView
from lamina.report.reasons import pod_named, why_pod


def why(view: ClusterView, namespace: str, name: str) -> Iterator[str]:
    pod = pod_named(view, namespace, name)
    assert pod is not None
    return why_pod(view, pod)
