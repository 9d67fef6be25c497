"""Calls a scheduler extender over HTTP with the same bodies as kube-scheduler.

The types of k8s.io/kube-scheduler/extender/v1 have no JSON names, so Go writes the field names as they are
("Pod", "NodeNames") and reads answers case-insensitively. Both are done here.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from lamina.errors import Outside
from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.rules.pod_requests import requests_any

HOLD_OFF_S = 1.0


class ManagedResource(Struct, frozen=True):
    """A resource that the extender manages. With `ignored_by_scheduler`, the scheduler does not count it."""

    name: str
    ignored_by_scheduler: bool = True


class ExtenderConfig(Struct, frozen=True):
    """One extender, as in KubeSchedulerConfiguration. `timeout` is in seconds; an empty verb is not called."""

    url: str
    managed: tuple[ManagedResource, ...]
    filter_verb: str = "filter"
    prioritize_verb: str = "prioritize"
    preempt_verb: str = "preempt"
    bind_verb: str = "bind"
    weight: int = 1
    node_cache_capable: bool = True
    timeout: float = 5.0
    tls: ssl.SSLContext | None = None
    """The client's certificate, and whom it trusts, for HTTPS."""
    server_name: str | None = None
    """The name that the extender's certificate must have; None for the host of the URL."""

    @property
    def ignored(self) -> frozenset[str]:
        return frozenset(resource.name for resource in self.managed if resource.ignored_by_scheduler)


class ExtenderError(Outside):
    """The extender refused or could not be reached. The attempt fails and is repeated.

    As in kube-scheduler, the message is the error of the extender alone, where it sent one.
    """


class ExtenderDown(ExtenderError):
    """The extender did not answer."""


class ExtenderFilterResult(Struct, frozen=True):
    """Nodes that fit, and a reason for each node that does not."""

    nodes: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: frozenset[str] = frozenset()
    """Nodes in `failed` on which preemption would not help."""


class Extender:
    """One extender over one HTTP session. Create it in a running event loop and close it at the end.

    After a call without an answer, further calls fail at once for a second, so that a hanging extender does not delay
    pods that do not need it.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        timeout = aiohttp.ClientTimeout(total=config.timeout)
        connector = aiohttp.TCPConnector(limit=64, ssl=config.tls or True)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        self._down_since: float | None = None
        self._down_reason = ""

    async def close(self) -> None:
        await self._session.close()

    def is_interested(self, pod: Mapping[str, Any]) -> bool:
        """Whether the pod requests a resource that the extender manages. Without resources it sees every pod."""
        return not self.config.managed or requests_any(pod, [resource.name for resource in self.config.managed])

    async def filter(self, pod: Object, nodes: Sequence[Object], now: float) -> ExtenderFilterResult:
        """Raises ExtenderError if the attempt fails. `now` is in monotonic seconds, here and below."""
        if not self.config.filter_verb:
            return ExtenderFilterResult(tuple(map(objects.name, nodes)), {})
        asked = {objects.name(node) for node in nodes}
        answer = _fields(await self._call(self.config.filter_verb, self._arguments(pod, nodes), now))
        if error := answer.get("error"):
            raise ExtenderError(str(error))
        names = answer.get("nodenames")
        if names is None:
            names = [objects.name(node) for node in (_fields(answer.get("nodes") or {}).get("items") or [])]
        if strange := [name for name in names if name not in asked]:
            raise ExtenderError(f"extender {self.config.url} chose node {strange[0]!r}, which was not in the request")
        unresolvable = answer.get("failedandunresolvablenodes") or {}
        return ExtenderFilterResult(
            tuple(names), {**(answer.get("failednodes") or {}), **unresolvable}, frozenset(unresolvable)
        )

    async def prioritize(self, pod: Object, nodes: Sequence[Object], now: float) -> dict[str, float]:
        """Weighted scores by node. If the extender fails here, it has no preference, as in kube-scheduler."""
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
        """The pods that the extender wants to evict: UIDs by node, given the scheduler's own victims."""
        body: Object = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self.config.node_cache_capable:
            by_uid = {node: [{"UID": objects.uid(victim)} for victim in pods] for node, pods in victims.items()}
            body["NodeNameToMetaVictims"] = {n: {"Pods": p, "NumPDBViolations": 0} for n, p in by_uid.items()}
        else:
            body["NodeNameToVictims"] = {n: {"Pods": list(p), "NumPDBViolations": 0} for n, p in victims.items()}
        answer = _fields(await self._call(self.config.preempt_verb, body, now))
        chosen = {
            node: _fields(nodenametometavictim).get("pods") or []
            for node, nodenametometavictim in (answer.get("nodenametometavictims") or {}).items()
        }
        return {node: [str(_fields(pod).get("uid")) for pod in pods] for node, pods in chosen.items()}

    async def bind(self, pod: Mapping[str, Any], node: str, now: float) -> None:
        """Let the extender bind the pod. Raises ExtenderError if it did not."""
        body = {
            "PodName": objects.name(pod),
            "PodNamespace": objects.namespace(pod),
            "PodUID": objects.uid(pod),
            "Node": node,
        }
        answer = _fields(await self._call(self.config.bind_verb, body, now))
        if error := answer.get("error"):
            raise ExtenderError(str(error))

    def _arguments(self, pod: Object, nodes: Sequence[Object]) -> Object:
        if self.config.node_cache_capable:
            return {"Pod": pod, "Nodes": None, "NodeNames": [objects.name(node) for node in nodes]}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}

    async def _call(self, verb: str, body: Object, now: float) -> Any:
        if self._down_since is not None and now < self._down_since + HOLD_OFF_S:
            raise ExtenderDown(self._down_reason)
        url = f"{self.config.url.rstrip('/')}/{verb}"
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                url, data=msgspec.json.encode(body), headers=headers, server_hostname=self.config.server_name
            ) as answer:
                data = await answer.read()
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            self._down_since = now
            self._down_reason = f"extender {self.config.url} is not responding: {_why(error, self.config.timeout)}"
            raise ExtenderDown(self._down_reason) from error
        self._down_since = None
        if status != 200:
            said = data.decode(errors="replace").strip()[:300]
            raise ExtenderError(f"extender {url} answered {status}" + (f": {said}" if said else ""))
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise ExtenderError(f"extender {url} answered with invalid JSON: {error}") from error


def _fields(answer: Any) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in answer.items()} if isinstance(answer, dict) else {}


def _why(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__
