"""Where the NVIDIA configuration of a node comes from, which one applies now, and when another one does.

A ClusterPolicy of NVIDIA's operator names the ConfigMap, its default entry, the MIG strategy and the directory of MPS.
Without a ClusterPolicy, or if it names no ConfigMap, Lamina's configuration names one or contains the configurations
itself. The node's label chooses among them. The agent reads only a ConfigMap that is named, because it may read
ConfigMaps of other products only where an administrator allowed it.

The node's label, the ConfigMap and the ClusterPolicy are only watched for changes; after one, everything is read again.
A refused configuration becomes an event on the node and a row of its Inventory, and the one before it stays in force.
That one is on disk, so that it stays in force across restarts too. What was deleted does not stay in force: without the
ClusterPolicy, ConfigMap or file that the node used it offers shares again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lamina.agent.state.observed import NO_CONFIG, AppliedConfig, Refusals
from lamina.config_source.last_good import LastGoodFile
from lamina.configuration import Config
from lamina.configuration.nvidia import choose, load
from lamina.configuration.nvidia.choice import EMPTY, LABEL, AbsentConfig
from lamina.configuration.yaml_documents import shown
from lamina.core.object_names import is_object_name
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
    Refused,
    follow,
)
from lamina.ports.kube.follow import identity, trimmed_to
from lamina.ports.polling import FailureLog, retry


class ConfigSource(NamedTuple):
    """`name` is that of the ConfigMap; empty if the configurations are in Lamina's configuration."""

    namespace: str
    name: str
    default: str
    fallbacks: tuple[str, ...]
    mig_strategy: str
    mps_root: str

    @property
    def where(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}" if self.name else "nativeDevices.configs"


async def find_source(kube: Kube, config: Config, namespace: str = "") -> ConfigSource:
    """Where the configurations are. `namespace` overrides the ConfigMap's namespace. Raises Outside."""
    return source_of(await _policy(kube), config, namespace)


def source_of(policy: Object | None, config: Config, namespace: str = "") -> ConfigSource:
    """The same for a given ClusterPolicy. Raises BadInput if it names what no ConfigMap can be called."""
    ours = config.native_devices
    namespace = namespace or ours.config_map.namespace
    spec = (policy or {}).get("spec") or {}
    theirs = (spec.get("devicePlugin") or {}).get("config") or {}
    policy_strategy = (spec.get("mig") or {}).get("strategy") or "none"
    mig = (policy_strategy if policy_strategy != "none" else ours.mig_strategy) or ""
    mps = ((spec.get("devicePlugin") or {}).get("mps") or {}).get("root") or ""
    if named := theirs.get("name"):
        if not is_object_name(named):
            raise BadInput(
                f"ClusterPolicy {(policy or {})['metadata']['name']}: devicePlugin.config.name must be the name of a "
                f"ConfigMap, got {shown(named)}"
            )
        # NVIDIA's operator starts its plugin without the fallbacks of NVIDIA's chart, so that a policy can name a
        # ConfigMap before any node is chosen by a label.
        return ConfigSource(namespace, named, theirs.get("default") or "", (EMPTY,), mig, mps)
    return ConfigSource(namespace, ours.config_map.name, ours.default, ours.fallbacks, mig, mps)


async def read_applied(kube: Kube, node: str, config: Config, source: ConfigSource) -> AppliedConfig:
    """The configuration that applies to the node now. Raises BadInput if it is invalid, AbsentConfig if
    it does not exist, and Outside."""
    label = ((await kube.get(NODES, node))["metadata"].get("labels") or {}).get(LABEL, "")
    texts = await _texts(kube, source, config)
    if texts is None:
        if label:
            raise AbsentConfig(
                f"the label {LABEL} names {label}, but neither a ClusterPolicy nor nativeDevices.configMap names a "
                "ConfigMap"
            )
        return AppliedConfig(policy=source.mig_strategy)
    name = choose(label, texts.keys(), default=source.default, fallbacks=source.fallbacks, where=source.where)
    if name is None:
        return AppliedConfig(policy=source.mig_strategy)
    where = f"{source.where}, {name}"
    config_of_node = load(texts[name], where, mig_strategy=source.mig_strategy, mps_root=source.mps_root)
    return AppliedConfig(name=name, config=config_of_node, source=source.where, policy=source.mig_strategy)


async def _policy(kube: Kube) -> Object | None:
    """The ClusterPolicy; the operator allows only one."""
    try:
        items = (await kube.list(CLUSTER_POLICIES)).items
    except NotFound:
        return None
    return min(items, key=lambda each: str(each["metadata"]["name"]), default=None)


async def _texts(kube: Kube, source: ConfigSource, config: Config) -> Mapping[str, str] | None:
    """The texts of the configurations by name; None if there are none."""
    if not source.name:
        written: Mapping[str, Any] = config.native_devices.configs
        return {name: msgspec.json.encode(each).decode() for name, each in written.items()} or None
    try:
        config_map = await kube.get(CONFIG_MAPS, source.name, namespace=source.namespace)
    except NotFound as error:
        raise AbsentConfig(f"{source.where} with the configurations of NVIDIA's plugin does not exist") from error
    except Refused as error:
        raise BadInput(
            f"the agent may not read {source.where} with the configurations of NVIDIA's plugin; "
            "set agent.nvidiaNamespace to its namespace when installing"
        ) from error
    return dict(config_map.get("data") or {})


log = logging.getLogger(__name__)

SETTLE_S = 0.1
"""Changes that belong together arrive within this time."""
RETRY_S = 2.0
_IDENTITY = trimmed_to()
_KIND = "configuration of NVIDIA's plugin"
_PREVIOUS = "the previous one stays in force"
_NONE = "no configuration of NVIDIA's plugin applies, and the node offers shares"


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
        refusals: Refusals,
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
        self._refusals, self._aside = refusals, refusals.aside

    async def current(self, config: Config) -> AppliedConfig:
        """The configuration that applies now; if it is refused, the last accepted one, and if it was deleted, none.

        Raises Outside.
        """
        try:
            self._source = await find_source(self._kube, config, self._namespace)
            applied = await read_applied(self._kube, self._node, config, self._source)
        except NotFound:
            return self._last()  # the node is not registered yet
        except Outside:
            raise
        except AbsentConfig as problem:
            if not self._was_deleted(problem):
                return await self._refuse(problem, self._last())
            strategy = self._source.mig_strategy if self._source else ""
            return await self._refuse(problem, AppliedConfig(policy=strategy))
        except Exception as problem:
            return await self._refuse(problem, self._last())
        self._aside.forget(_KIND, self._where())
        self._refusals.accept(_KIND)
        if applied != self._last():
            self._last_good.write(applied)
            await self._report(applied)
        return applied

    def _was_deleted(self, absent: AbsentConfig) -> bool:
        """Whether the last accepted configuration was where this one is missing. Otherwise something names it wrongly.

        Where nothing names a ConfigMap any more, the one that did was deleted or changed on purpose.
        """
        last, named = self._last(), absent.name or (self._source is not None and self._source.name)
        return not named or (last.source == self._where() and absent.name in ("", last.name))

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

    async def _refuse(self, problem: Exception, applied: AppliedConfig) -> AppliedConfig:
        """Say that a configuration is refused, and what is `applied` in its place."""
        self._aside.add(_KIND, self._where(), problem)
        message = f"{str(problem) or type(problem).__name__}; {_NONE if applied.config is None else _PREVIOUS}"
        if self._refusals.refuse(_KIND, self._where(), message, self._clock.wall()):
            await self._event("ConfigurationRefused", message, warning=True)
        if applied != self._last():
            self._last_good.write(applied)
        return applied

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
