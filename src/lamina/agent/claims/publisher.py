"""Keeps the node's ResourceSlices as offered: written when that changes, and when one was deleted or changed."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from lamina.agent.claims.offer import ClaimOffer, looked
from lamina.agent.context import NodeContext
from lamina.dra.slices import DIGEST, digest_of, generation, node_slices
from lamina.ports.kube import NODES, RESOURCE_SLICES, NotFound, Object, follow
from lamina.ports.kube.follow import DELETED, SYNCED
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
    meta = {key: found["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    digest = digest_of(found)
    spec = found["spec"]
    return {
        "metadata": meta | {"annotations": {DIGEST: digest} if digest else {}},
        "spec": {"driver": spec.get("driver"), "pool": spec["pool"]},
    }


class SlicePublisher:
    """Compares what is offered with what the watch has seen. A write that fails is repeated."""

    def __init__(self, node: NodeContext, offer: ClaimOffer, watch: SliceWatch) -> None:
        self._node = node
        self._offer = offer
        self._watch = watch

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot write the ResourceSlices: %s")
        await poll(self.look, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)

    async def look(self) -> None:
        """Write what differs. Raises Outside."""
        published = self._watch.published
        if published is None or not await looked(self._offer):
            return
        documents = [device.document for device in self._offer.free]
        wanted = node_slices(self._node.node, self._node.settings.dra_driver, documents, list(published.values()))
        for each in wanted:
            current = published.get(each["metadata"]["name"])
            if current is None or (generation(current), digest_of(current)) != (generation(each), digest_of(each)):
                self._watch.observe(await self._write(each, current))
                log.info("Published %s; devices: %d", each["metadata"]["name"], len(each["spec"]["devices"]))
        for name in published.keys() - {each["metadata"]["name"] for each in wanted}:
            await self._delete(published[name])

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
