"""Calling a scheduler extender over HTTP with the very bodies that kube-scheduler sends.

The types of k8s.io/kube-scheduler/extender/v1 carry no JSON names, so Go writes their field names as they are
("Pod", "NodeNames") and reads an answer whatever its case. Both are done here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from lamina.errors import Outside
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.lab.scheduler.pod_requests import asks_for

HOLD_OFF_S = 1.0


@dataclass(frozen=True, slots=True)
class Managed:
    """A resource that the extender manages; `ignored_by_scheduler`: the scheduler itself does not count it."""

    name: str
    ignored_by_scheduler: bool = True


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """One extender, as in KubeSchedulerConfiguration. `timeout` in seconds; a verb left empty is not called."""

    url: str
    managed: tuple[Managed, ...]
    filter_verb: str = "filter"
    prioritize_verb: str = "prioritize"
    preempt_verb: str = "preempt"
    bind_verb: str = "bind"
    weight: int = 1
    node_cache_capable: bool = True
    timeout: float = 5.0

    @property
    def ignored(self) -> frozenset[str]:
        return frozenset(each.name for each in self.managed if each.ignored_by_scheduler)


class ExtenderError(Outside):
    """The extender refused or could not be reached. It fails the attempt, never the pod."""


class ExtenderDown(ExtenderError):
    """No answer at all."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Nodes that will do, and a reason for each that will not."""

    nodes: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: frozenset[str] = frozenset()
    """Nodes of `failed` that no eviction would mend."""


class Extender:
    """One extender over one HTTP session. Create it in a running event loop; close it at the end.

    After a call without an answer further calls fail at once for a second, so that a hanging extender does not hold up
    pods that have nothing to do with it.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        timeout = aiohttp.ClientTimeout(total=config.timeout)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=64))
        self._silent_since: float | None = None
        self._silence = ""

    async def close(self) -> None:
        await self._session.close()

    def is_interested(self, pod: Mapping[str, Any]) -> bool:
        """Whether the pod asks for a resource that the extender manages. One that manages none is asked always."""
        return not self.config.managed or asks_for(pod, [each.name for each in self.config.managed])

    async def filter(self, pod: Object, nodes: Sequence[Object], now: float) -> Filtered:
        """Raises ExtenderError when the attempt is to fail. `now` in monotonic seconds, here and below."""
        if not self.config.filter_verb:
            return Filtered(tuple(map(objects.name, nodes)), {})
        asked = {objects.name(node) for node in nodes}
        answer = _fields(await self._call(self.config.filter_verb, self._arguments(pod, nodes), now))
        if error := answer.get("error"):
            raise ExtenderError(f"extender {self.config.url}: {error}")
        names = answer.get("nodenames")
        if names is None:
            names = [objects.name(node) for node in (_fields(answer.get("nodes") or {}).get("items") or [])]
        if strange := [name for name in names if name not in asked]:
            raise ExtenderError(f"extender {self.config.url} chose node {strange[0]!r}, which it was not asked about")
        unresolvable = answer.get("failedandunresolvablenodes") or {}
        return Filtered(tuple(names), {**(answer.get("failednodes") or {}), **unresolvable}, frozenset(unresolvable))

    async def prioritize(self, pod: Object, nodes: Sequence[Object], now: float) -> dict[str, float]:
        """Scores by node, weighted. An extender that fails here has no opinion, as in kube-scheduler."""
        if not self.config.prioritize_verb:
            return {}
        try:
            answer = await self._call(self.config.prioritize_verb, self._arguments(pod, nodes), now)
        except ExtenderError:
            return {}
        scores: dict[str, float] = {}
        for entry in answer if isinstance(answer, list) else ():
            given = _fields(entry)
            scores[str(given.get("host"))] = float(given.get("score") or 0) * self.config.weight
        return scores

    async def preempt(self, pod: Object, victims: Mapping[str, Sequence[Object]], now: float) -> dict[str, list[str]]:
        """Whom the extender wants evicted, UIDs by node, given whom the scheduler itself would evict."""
        body: Object = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self.config.node_cache_capable:
            by_uid = {node: [{"UID": objects.uid(each)} for each in pods] for node, pods in victims.items()}
            body["NodeNameToMetaVictims"] = {n: {"Pods": p, "NumPDBViolations": 0} for n, p in by_uid.items()}
        else:
            body["NodeNameToVictims"] = {n: {"Pods": list(p), "NumPDBViolations": 0} for n, p in victims.items()}
        answer = _fields(await self._call(self.config.preempt_verb, body, now))
        told = {
            node: _fields(each).get("pods") or [] for node, each in (answer.get("nodenametometavictims") or {}).items()
        }
        return {node: [str(_fields(pod).get("uid")) for pod in pods] for node, pods in told.items()}

    async def bind(self, pod: Mapping[str, Any], node: str, now: float) -> None:
        """Let the extender bind the pod. Raises ExtenderError where it did not."""
        body = {
            "PodName": objects.name(pod),
            "PodNamespace": objects.namespace(pod),
            "PodUID": objects.uid(pod),
            "Node": node,
        }
        answer = _fields(await self._call(self.config.bind_verb, body, now))
        if error := answer.get("error"):
            raise ExtenderError(f"extender {self.config.url}: {error}")

    def _arguments(self, pod: Object, nodes: Sequence[Object]) -> Object:
        if self.config.node_cache_capable:
            return {"Pod": pod, "Nodes": None, "NodeNames": [objects.name(node) for node in nodes]}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}

    async def _call(self, verb: str, body: Object, now: float) -> Any:
        if self._silent_since is not None and now < self._silent_since + HOLD_OFF_S:
            raise ExtenderDown(self._silence)
        url = f"{self.config.url.rstrip('/')}/{verb}"
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(url, data=msgspec.json.encode(body), headers=headers) as answer:
                data = await answer.read()
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            self._silent_since = now
            self._silence = f"extender {self.config.url} does not answer: {_why(error, self.config.timeout)}"
            raise ExtenderDown(self._silence) from error
        self._silent_since = None
        if status != 200:
            said = data.decode(errors="replace").strip()[:300]
            raise ExtenderError(f"extender {url} answered {status}" + (f": {said}" if said else ""))
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise ExtenderError(f"extender {url} answered with what is no JSON: {error}") from error


def _fields(answer: Any) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in answer.items()} if isinstance(answer, dict) else {}


def _why(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__
