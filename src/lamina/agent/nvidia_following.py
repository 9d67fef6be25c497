"""Follow what decides about a node's NVIDIA configuration, and tell when another one holds.

The node's label, the ConfigMaps and the ClusterPolicy are only watched for that something has changed; what holds is
then read anew. A configuration that is refused is told as an event on the node, and the one before it stays; it is kept
on the disk, so that it stays over a restart too.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path

import msgspec

from lamina.agent.nvidia_source import NONE, Applied, Source, applied, source
from lamina.dialects.config import Config
from lamina.dialects.nvidia.choice import LABEL
from lamina.errors import BadInput, Outside
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NODES,
    EventRecorder,
    Kube,
    NotFound,
    Object,
    follow,
)

log = logging.getLogger(__name__)

SETTLE_S = 0.1
"""How long several changes may take that belong together."""
AGAIN_S = 2.0


class Kept:
    """The configuration that held last, on the disk."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def read(self) -> Applied:
        """None of NVIDIA's where there is nothing that can be understood."""
        try:
            return msgspec.json.decode(self._files.read(self._path) or b"{}", type=Applied)
        except msgspec.DecodeError as error:
            log.warning("%s is not understood: %s", self._path, error)
            return NONE

    def write(self, value: Applied) -> None:
        self._files.write(self._path, msgspec.json.encode(value))


class NvidiaFollower:
    """One node's. `events` tells people what was refused and what holds. The ConfigMap is in `namespace`, else where
    our configuration says.
    """

    def __init__(
        self, kube: Kube, node: str, kept: Kept, events: EventRecorder, clock: Clock, *, namespace: str = ""
    ) -> None:
        self._kube = kube
        self._node = node
        self._namespace = namespace
        self._source: Source | None = None
        self._kept = kept
        self._events = events
        self._clock = clock
        self._refused = ""

    async def present(self, config: Config) -> Applied:
        """What holds now; where that is refused, what held before. Raises Outside."""
        try:
            self._source = await source(self._kube, config, self._namespace)
            now = await applied(self._kube, self._node, config, self._source)
        except BadInput as problem:
            await self._refuse(str(problem))
            return self._kept.read()
        except NotFound:
            return self._kept.read()  # the node is not registered yet
        self._refused = ""
        if now != self._kept.read():
            self._kept.write(now)
            await self._tell(now)
        return now

    async def another(self, config: Config, present: Applied) -> Applied:
        """The next configuration that differs from `present`."""
        now = present
        while now == present:
            now = await self._from(self._source, config, present)
        return now

    async def _from(self, where: Source | None, config: Config, present: Applied) -> Applied:
        """What holds when that is not `present` any more, or is from another source."""
        async with contextlib.aclosing(self._changes(where)) as changes:
            async for _ in changes:
                await self._clock.sleep(SETTLE_S)
                try:
                    now = await self.present(config)
                except Outside as error:
                    log.warning("NVIDIA's configuration cannot be read: %s", error)
                    await self._clock.sleep(AGAIN_S)
                    now = present
                if now != present or self._source != where:
                    return now
        raise AssertionError("whoever follows a configuration follows it for ever")

    async def _changes(self, where: Source | None) -> AsyncGenerator[None]:
        """Something has changed that may matter."""
        changed = asyncio.Event()
        tasks = [asyncio.create_task(each) for each in self._watches(where, changed)]
        waiting = asyncio.create_task(changed.wait())
        try:
            while True:
                done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
                for task in done & set(tasks):
                    task.result()
                changed.clear()
                waiting = asyncio.create_task(changed.wait())
                yield
        finally:
            for task in (*tasks, waiting):
                task.cancel()
            await asyncio.gather(*tasks, waiting, return_exceptions=True)

    def _watches(self, where: Source | None, changed: asyncio.Event) -> list[Coroutine[None, None, None]]:
        config_map = [self._config_map(where, changed)] if where and where.name else []
        return [self._labels(changed), self._policies(changed), *config_map]

    async def _labels(self, changed: asyncio.Event) -> None:
        label: str | None = None
        async for told in follow(self._kube, NODES, fields=f"metadata.name={self._node}", trim=_labels):
            now = told.object["metadata"].get("labels", {}).get(LABEL, "") if told.object else label
            if now != label:
                label = now
                changed.set()

    async def _config_map(self, where: Source, changed: asyncio.Event) -> None:
        name = f"metadata.name={where.name}"
        async for told in follow(self._kube, CONFIG_MAPS, namespace=where.namespace, fields=name, trim=_name):
            if told.object:
                changed.set()

    async def _policies(self, changed: asyncio.Event) -> None:
        """Follow the policies once their kind is defined; it is asked after as seldom as definitions change."""
        name = f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        async for told in follow(self._kube, CUSTOM_RESOURCE_DEFINITIONS, fields=f"metadata.name={name}", trim=_name):
            if told.object:
                break
        async for told in follow(self._kube, CLUSTER_POLICIES):
            if told.object:
                changed.set()

    async def _refuse(self, problem: str) -> None:
        if problem != self._refused:
            log.error("NVIDIA's configuration is refused, the one before it stays in force: %s", problem)
            self._refused = problem
            await self._event("ConfigurationRefused", f"{problem}; the one before it stays in force", warning=True)

    async def _tell(self, now: Applied) -> None:
        if now.config is None:
            await self._event("ConfigurationApplied", "no configuration of NVIDIA's plugin holds; shares are granted")
            return
        await self._event("ConfigurationApplied", f"the configuration {now.name} of NVIDIA's plugin holds")
        for warning in now.config.warnings:
            await self._event("ConfigurationIgnored", f"{now.name}: {warning}", warning=True)

    async def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        log.info("%s", message)
        try:
            node = await self._kube.get(NODES, self._node)
        except Outside as error:
            log.warning("The event %s cannot be written: %s", reason, error)
            return
        await self._events.record(NODES, node, reason, message, warning=warning)


def _name(obj: Object) -> Object:
    meta = obj["metadata"]
    return {"metadata": {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in meta}}


def _labels(obj: Object) -> Object:
    labels = obj["metadata"].get("labels") or {}
    return {"metadata": _name(obj)["metadata"] | {"labels": {LABEL: labels.get(LABEL, "")}}}
