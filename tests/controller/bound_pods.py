"""A `FakeKube` that also plays the kubelet of the pods that are bound."""

import copy

from lamina.core.ledger import Taken, taken_by
from lamina.ledger.grant_objects import grant_record
from lamina.ports.kube import GRANTS, PODS, BindingMetadata, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.protocol import NO_METADATA

RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}


class StartingKube(FakeKube):
    """Starts each pod that is bound with a grant. `runs_with` holds what it started with, by UID and GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.runs_with: dict[str, dict[str, Taken]] = {}

    async def bind(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str,
        node: str,
        metadata: BindingMetadata = NO_METADATA,
        version: str = "",
    ) -> None:
        await super().bind(pod, namespace=namespace, uid=uid, node=node, metadata=metadata, version=version)
        for grant in self.grants():
            if grant["spec"]["podUID"] == uid and grant["spec"]["node"] == node:
                self.runs_with[uid] = taken_by(grant_record(grant).grant.containers)
        if uid in self.runs_with:
            found = self._found(PODS, namespace, pod)
            self._store(PODS, found, {**copy.deepcopy(found), "status": RUNNING})

    def pods(self) -> dict[str, Object]:
        return {obj["metadata"]["uid"]: obj for resource, obj in self.stored() if resource == PODS}

    def grants(self) -> list[Object]:
        return [obj for resource, obj in self.stored() if resource == GRANTS]
