"""AdmissionReviews about odd pods, and about workloads with such pods in their templates."""

import json
from random import Random
from typing import Any

from lamina.dialects.templates import WORKLOADS
from lamina.ports.kube import Object
from tests.hostile_objects import values


def review(random: Random, pod: Object) -> bytes:
    """The body of a request to admission about the pod, with requests that the API server never sends among them."""
    group, resource, obj = random.choice((("", "pods", pod), ("", "pods", pod), _workload(random, pod)))
    request: dict[str, Any] = {
        "uid": random.choice(("1", values.text(random), "x" * 100_000)),
        "operation": random.choice(("CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT", values.text(random))),
        "namespace": random.choice(("default", "kube-system", values.text(random))),
        "subResource": random.choice(("", "", "ephemeralcontainers", "status", values.text(random))),
        "resource": {"group": group, "version": "v1", "resource": resource},
        "object": obj,
        "oldObject": random.choice((None, obj, {})),
        "userInfo": {"username": values.text(random), "groups": [values.text(random)] * random.choice((0, 1, 5000))},
        "dryRun": random.choice((True, False)),
    }
    kept = values.sparse(random, request, "uid", "object")
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": kept}).encode()


def _workload(random: Random, pod: Object) -> tuple[str, str, Object]:
    group = random.choice(sorted(WORKLOADS))
    resource = random.choice(sorted(WORKLOADS[group]))
    template = {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}}
    spec = {"jobTemplate": {"spec": template}} if resource == "cronjobs" else template
    return group, resource, {"metadata": {"name": values.name(random)}, "spec": spec}
