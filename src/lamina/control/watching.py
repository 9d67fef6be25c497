"""Feed the ledger and the quotas from the cluster, and say when all of it has been read for the first time."""

import asyncio
import logging
from collections.abc import Callable

from lamina.control.grant_objects import grant_record, inventory_of
from lamina.control.ledger import Ledger
from lamina.control.quotas import Quotas
from lamina.control.stages import pod_state
from lamina.errors import BadInput
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, RESOURCE_QUOTAS, Kube, Object, Resource, follow
from lamina.ports.kube.follow import DELETED, SYNCED

log = logging.getLogger(__name__)


class Watching:
    """Runs one task per kind of object. `rebuilt` is set once every kind has been listed."""

    def __init__(self, kube: Kube, ledger: Ledger, quotas: Quotas, *, now: Callable[[], float]) -> None:
        self._kube = kube
        self._ledger = ledger
        self._quotas = quotas
        self._now = now
        self._tell: dict[Resource, Callable[[str, Object], None]] = {
            INVENTORIES: self._inventory,
            GRANTS: self._grant,
            PODS: self._pod,
            RESOURCE_QUOTAS: self._quota,
        }
        self._missing = {resource.plural for resource in self._tell}
        self.rebuilt = asyncio.Event()

    @property
    def missing(self) -> list[str]:
        """Kinds that have not been listed yet."""
        return sorted(self._missing)

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._tell:
                group.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        trim = _trimmed_pod if resource == PODS else _as_it_is
        tell = self._tell[resource]
        async for kind, obj in follow(self._kube, resource, trim=trim):
            if kind == SYNCED:
                self._missing.discard(resource.plural)
                if not self._missing:
                    self.rebuilt.set()
                continue
            try:
                tell(kind, obj)
            except BadInput as problem:
                log.error("%s", problem)

    def _inventory(self, kind: str, obj: Object) -> None:
        # One that cannot be read offers nothing, whatever stood there before.
        self._ledger.inventory_gone(obj["metadata"]["name"])
        if kind != DELETED:
            self._ledger.inventory_seen(inventory_of(obj))

    def _grant(self, kind: str, obj: Object) -> None:
        record = grant_record(obj)
        if kind == DELETED:
            self._ledger.grant_gone(record.uid, record.grant.pod_uid, self._now())
        else:
            self._ledger.grant_seen(record)

    def _pod(self, kind: str, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if kind == DELETED:
            self._ledger.pod_gone(uid, self._now())
        else:
            self._ledger.pod_seen(uid, pod_state(obj), self._now())

    def _quota(self, kind: str, obj: Object) -> None:
        if kind == DELETED:
            self._quotas.gone(obj)
        else:
            self._quotas.seen(obj)


def _as_it_is(obj: Object) -> Object:
    return obj


def _trimmed_pod(pod: Object) -> Object:
    """What `pod_state` reads; a cluster has tens of thousands of pods, and most of each is their templates."""
    meta = {key: pod["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "metadata": meta,
        "spec": {"nodeName": (pod.get("spec") or {}).get("nodeName")},
        "status": {"phase": (pod.get("status") or {}).get("phase")},
    }
