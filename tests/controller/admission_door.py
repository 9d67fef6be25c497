"""Asking admission over HTTPS, as any pod of the cluster can."""

import ssl
from typing import Any

from lamina.ports.kube import Object
from tests.controller.cluster import RunningController

UNVERIFIED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
UNVERIFIED.check_hostname, UNVERIFIED.verify_mode = False, ssl.CERT_NONE


def review(group: str, resource: str, obj: Any, namespace: str = "default") -> dict[str, Any]:
    """An AdmissionReview about the creation of an object."""
    asked = {"uid": "1", "operation": "CREATE", "namespace": namespace, "object": obj}
    asked["resource"] = {"group": group, "version": "v1", "resource": resource}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


async def ask_admission(cluster: RunningController, pod: Object) -> bytes:
    """What admission answers about a new pod in its namespace."""
    body = review("", "pods", pod, pod["metadata"]["namespace"])
    async with cluster.session.post(cluster.urls["admission"], json=body, ssl=UNVERIFIED) as response:
        assert response.status == 200
        return await response.read()
