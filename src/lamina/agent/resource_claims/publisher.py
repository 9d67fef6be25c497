"""Keeps the node's ResourceSlices as offered: written when that changes, and when one was deleted or changed."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from lamina.agent.context import NodeContext
from lamina.agent.resource_claims.dra_devices import DraDevices, refreshed
from lamina.dra.conditions import with_conditions
from lamina.dra.slices import COUNTERS, DIGEST, digest_of, generation, node_slices
from lamina.ports.kube import NODES, RESOURCE_SLICES, NotFound, Object, Refused, follow
from lamina.ports.kube.follow import DELETED, SYNCED, identity
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)


class SliceWatch:
    """Follows the slices of the node and driver. `published` is None until they have been listed."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._found: dict[str, Object] = {}
        self._synced = False

    async def run(self) -> None:
        fields = f"spec.nodeName={self._node.node}"
        async for kind, found in follow(self._node.kube, self._node.clock, RESOURCE_SLICES, fields=fields, trim=_trim):
            if kind == SYNCED:
                self._synced = True
            elif found["spec"].get("driver") == self._node.settings.dra_driver:
                self.observe(found, gone=kind == DELETED)

    def observe(self, found: Object, *, gone: bool = False) -> None:
        """The slice is as given, or gone."""
        name = found["metadata"]["name"]
        if gone:
            self._found.pop(name, None)
        else:
            self._found[name] = _trim(found)

    @property
    def published(self) -> Mapping[str, Object] | None:
        return dict(self._found) if self._synced else None


def _trim(found: Object) -> Object:
    digest = digest_of(found)
    spec = found["spec"]
    return {
        "metadata": identity(found) | {"annotations": {DIGEST: digest} if digest else {}},
        "spec": {"driver": spec.get("driver"), "pool": spec["pool"]},
    }


class SlicePublisher:
    """Compares what is offered with what the watch has seen. A write that fails is repeated."""

    def __init__(self, node: NodeContext, offer: DraDevices, watch: SliceWatch) -> None:
        self._node = node
        self._offer = offer
        self._watch = watch

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot write the ResourceSlices: %s")
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)

    async def reconcile(self) -> None:
        """Write what differs. Raises Outside."""
        published = self._watch.published
        if published is None or not await refreshed(self._offer):
            return
        wanted = self._wanted(published)
        for each in sorted(wanted, key=lambda each: COUNTERS not in each["spec"]):
            current = published.get(each["metadata"]["name"])
            same = current and (generation(current), digest_of(current)) == (generation(each), digest_of(each))
            if not same and not await self._publish(each, current):
                return  # the next look offers less
        for name in published.keys() - {each["metadata"]["name"] for each in wanted}:
            await self._delete(published[name])

    def _wanted(self, published: Mapping[str, Object]) -> list[Object]:
        free, driver = self._offer.free, self._node.settings.dra_driver
        documents: list[Mapping[str, Any]] = [device.document for device in free]
        if self._node.settings.dra_binding:
            documents = [with_conditions(each) for each in documents]
        counters = self._offer.counters(free)
        return node_slices(self._node.node, driver, documents, list(published.values()), counters)

    async def _publish(self, wanted: Object, current: Object | None) -> bool:
        """Write a slice. Returns whether counters work, which come first: before the devices that need them."""
        name, spec = wanted["metadata"]["name"], wanted["spec"]
        try:
            written = await self._write(wanted, current)
        except Refused as error:
            if COUNTERS in spec or not any("consumesCounters" in device for device in spec["devices"]):
                raise
            return self._without_counters(str(error))
        self._watch.observe(written)
        if COUNTERS in spec and not written["spec"].get(COUNTERS):
            return self._without_counters("it drops counters; the feature gate DRAPartitionableDevices is off")
        log.info("Published %s; devices: %d", name, len(spec.get("devices", ())))
        return True

    def _without_counters(self, reason: str) -> bool:
        """From now on no MIG devices on demand are offered, because nothing would keep them apart."""
        log.warning("Claims get no MIG devices on demand, because the API server does not support it: %s", reason)
        self._offer.counts = False
        return False

    async def _write(self, wanted: Object, current: Object | None) -> Object:
        meta: dict[str, Any] = wanted["metadata"] | {"ownerReferences": await self._owner()}
        if current is None:
            return await self._node.kube.create(RESOURCE_SLICES, {**wanted, "metadata": meta})
        meta |= {key: current["metadata"][key] for key in ("uid", "resourceVersion")}
        return await self._node.kube.replace(RESOURCE_SLICES, {**wanted, "metadata": meta})

    async def _delete(self, slice_: Object) -> None:
        with contextlib.suppress(NotFound):
            await self._node.kube.delete(RESOURCE_SLICES, slice_["metadata"]["name"])
        self._watch.observe(slice_, gone=True)

    async def _owner(self) -> list[dict[str, Any]]:
        """So that the API server removes the slices with the node."""
        node = await self._node.kube.get(NODES, self._node.node)
        uid = node["metadata"]["uid"]
        return [{"apiVersion": "v1", "kind": "Node", "name": self._node.node, "uid": uid, "controller": True}]
