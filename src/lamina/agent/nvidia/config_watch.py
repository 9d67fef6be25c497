"""Watches everything that decides which NVIDIA configuration applies to the node, and reports when another one does.

The node's label, the ConfigMap and the ClusterPolicy are only watched for changes; after one, everything is read again.
A refused configuration becomes an event on the node, and the one before it stays in force. That one is on disk, so that
it stays in force across restarts too.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path

import msgspec

from lamina.agent.nvidia.config_source import ConfigSource, find_source, read_applied
from lamina.agent.state.nvidia_config import NO_CONFIG, AppliedConfig
from lamina.config_source.last_good import LastGoodFile
from lamina.configuration import Config
from lamina.configuration.nvidia.choice import LABEL
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
from lamina.ports.kube.follow import identity, trimmed_to
from lamina.ports.polling import FailureLog, retry
from lamina.ports.set_aside import SetAside

log = logging.getLogger(__name__)

SETTLE_S = 0.1
"""Changes that belong together arrive within this time."""
RETRY_S = 2.0
_IDENTITY = trimmed_to()
_KIND = "configuration of NVIDIA's plugin"


def last_good_config(path: Path, files: Files) -> LastGoodFile[AppliedConfig]:
    """The file with the last accepted configuration."""
    return LastGoodFile(path, files, encode=msgspec.json.encode, decode=_decode)


class NvidiaConfigWatch:
    """Watches for one node. The ConfigMap is in `namespace`; if that is empty, where Lamina's configuration says."""

    def __init__(
        self,
        kube: Kube,
        node: str,
        last_good: LastGoodFile[AppliedConfig],
        events: EventRecorder,
        clock: Clock,
        aside: SetAside,
        *,
        namespace: str = "",
    ) -> None:
        self._kube = kube
        self._node = node
        self._namespace = namespace
        self._source: ConfigSource | None = None
        self._last_good = last_good
        self._events = events
        self._clock = clock
        self._aside = aside
        self._refused = ""

    async def current(self, config: Config) -> AppliedConfig:
        """The configuration that applies now; if it is refused, the last accepted one. Raises Outside."""
        try:
            self._source = await find_source(self._kube, config, self._namespace)
            applied = await read_applied(self._kube, self._node, config, self._source)
        except NotFound:
            return self._last()  # the node is not registered yet
        except Outside:
            raise
        except Exception as problem:
            self._aside.add(_KIND, self._where(), problem)
            await self._report_refusal(str(problem) or type(problem).__name__)
            return self._last()
        self._aside.forget(_KIND, self._where())
        self._refused = ""
        if applied != self._last():
            self._last_good.write(applied)
            await self._report(applied)
        return applied

    async def next_change(self, config: Config, current: AppliedConfig) -> AppliedConfig:
        """The next configuration that differs from `current`."""
        applied = current
        while applied == current:
            applied = await self._next_from(self._source, config, current)
        return applied

    def _where(self) -> str:
        return self._source.where if self._source else CLUSTER_POLICIES.plural

    def _last(self) -> AppliedConfig:
        return self._last_good.read() or NO_CONFIG

    async def _next_from(self, source: ConfigSource | None, config: Config, current: AppliedConfig) -> AppliedConfig:
        """The configuration once it differs from `current` or comes from another source."""
        failures = FailureLog(log, "Cannot read the configuration of NVIDIA's plugin: %s")
        async with contextlib.aclosing(self._changes(source)) as changes:
            async for _ in changes:
                await self._clock.sleep(SETTLE_S)
                applied = await retry(
                    lambda: self.current(config), self._clock, every_s=RETRY_S, failed=failures.failed
                )
                failures.succeeded()
                if applied != current or self._source != source:
                    return applied
        raise AssertionError("a watch never ends")

    async def _changes(self, source: ConfigSource | None) -> AsyncGenerator[None]:
        """Yields after changes that may matter."""
        changed = asyncio.Event()
        tasks = [asyncio.create_task(watch) for watch in self._watches(source, changed)]
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

    def _watches(self, source: ConfigSource | None, changed: asyncio.Event) -> list[Coroutine[None, None, None]]:
        config_map = [self._watch_config_map(source, changed)] if source and source.name else []
        return [self._watch_label(changed), self._watch_policies(changed), *config_map]

    async def _watch_label(self, changed: asyncio.Event) -> None:
        label: str | None = None
        async for event in follow(
            self._kube, self._clock, NODES, fields=f"metadata.name={self._node}", trim=_trim_node
        ):
            observed = event.object["metadata"].get("labels", {}).get(LABEL, "") if event.object else label
            if observed != label:
                label = observed
                changed.set()

    async def _watch_config_map(self, source: ConfigSource, changed: asyncio.Event) -> None:
        fields = f"metadata.name={source.name}"
        async for event in follow(
            self._kube, self._clock, CONFIG_MAPS, namespace=source.namespace, fields=fields, trim=_IDENTITY
        ):
            if event.object:
                changed.set()

    async def _watch_policies(self, changed: asyncio.Event) -> None:
        """Watch ClusterPolicies once their kind is defined; until then only its definition is watched."""
        fields = f"metadata.name={CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        async for event in follow(self._kube, self._clock, CUSTOM_RESOURCE_DEFINITIONS, fields=fields, trim=_IDENTITY):
            if event.object:
                break
        async for event in follow(self._kube, self._clock, CLUSTER_POLICIES):
            if event.object:
                changed.set()

    async def _report_refusal(self, problem: str) -> None:
        if problem != self._refused:
            self._refused = problem
            await self._event("ConfigurationRefused", f"{problem}; the previous one stays in force", warning=True)

    async def _report(self, applied: AppliedConfig) -> None:
        if applied.config is None:
            message = "no configuration of NVIDIA's plugin applies; the node offers shares"
            await self._event("ConfigurationApplied", message)
            return
        await self._event("ConfigurationApplied", f"the configuration {applied.name} of NVIDIA's plugin applies")
        for warning in applied.config.warnings:
            await self._event("ConfigurationIgnored", f"{applied.name}: {warning}", warning=True)

    async def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        log.info("%s", message)
        try:
            node = await self._kube.get(NODES, self._node)
        except Exception as error:
            log.warning("Cannot write the event %s: %s", reason, error)
            return
        await self._events.record(NODES, node, reason, message, warning=warning)


def _decode(content: bytes) -> AppliedConfig:
    try:
        return msgspec.json.decode(content, type=AppliedConfig)
    except msgspec.DecodeError as error:
        raise BadInput(str(error)) from error


def _trim_node(obj: Object) -> Object:
    labels = obj["metadata"].get("labels") or {}
    return {"metadata": identity(obj) | {"labels": {LABEL: labels.get(LABEL, "")}}}
