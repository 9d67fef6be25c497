"""The compatibility labels of bound pods, which a Binding carries and not every API server copies.

Kubernetes copies a Binding's labels to the pod from version 1.35 on, unless a feature gate is off. The answer to a
Binding does not tell, so the pod is read after the first bind, and again now and then: replicas of the API server may
differ while it is updated.
"""

import logging
from collections.abc import Mapping

from lamina.errors import Outside
from lamina.ledger.pod_holding import GrantRecord
from lamina.ports.kube import PODS, Kube
from lamina.ports.kube.comparison import includes

log = logging.getLogger(__name__)

EVERY = 100
"""Of so many binds, one pod is read."""


class BoundLabels:
    """Patches pods whose labels were not copied."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._binds = 0
        self._copied = False

    async def complete(self, uid: str, record: GrantRecord, labels: Mapping[str, str]) -> None:
        """The pod was bound with a Binding that carried these labels. Failures are logged: labels are for people."""
        name, namespace = record.grant.pod, record.namespace
        unsure, self._binds = self._binds % EVERY == 0, self._binds + 1
        try:
            if unsure:
                pod = await self._kube.get(PODS, name, namespace=namespace)
                self._copied = includes(pod["metadata"].get("labels"), dict(labels))
            if not self._copied:
                change = {"metadata": {"uid": uid, "labels": dict(labels)}}
                await self._kube.patch(PODS, name, change, namespace=namespace)
        except Outside as error:
            log.warning("Pod %s/%s is bound but could not be labeled: %s", namespace, name, error)
