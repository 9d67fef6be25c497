"""The messages of kube-scheduler's extender protocol, and the decoding of the arguments of its verbs."""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import FieldInfo

from lamina.controller.extender.node_lists import NodeLists
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.dialects import check_pod
from lamina.errors import BadInput
from lamina.ports.kube import Object

MAX_BODY = 16 * 2**20
"""Bytes. Of 5,000 nodes, kube-scheduler sends up to 1.3 MB of names with a pod of up to 3 MiB, and to preempt the UIDs
of all pods on a tenth of the nodes, up to 6 MB."""
READ_S = 10.0
"""kube-scheduler sends a request at once."""


async def read_body(request: web.Request) -> bytes:
    """The whole body, bounded because any client that connects can send one.

    Raises BadInput for one that is too large, or not there in time.
    """
    try:
        async with asyncio.timeout(READ_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise BadInput(
            f"the request has more than {MAX_BODY // 2**20} MiB; set nodeCacheCapable to true for this extender in "
            "kube-scheduler's configuration, so that it sends names and not whole nodes"
        ) from error
    except TimeoutError as error:
        raise BadInput(f"the request did not arrive within {READ_S:g} s; check the network between the two") from error


class Arguments(Protocol):
    """The arguments of a verb, whose check raises BadInput or ValidationError for what kube-scheduler does not send."""

    def check(self) -> None: ...


_Args = TypeVar("_Args", bound=Arguments)
_PODS = 16
"""Pods that are recognized, the last ones."""
_MAX_POD = 64 * 2**10
"""Bytes."""


class _NodeMetadata(Struct):
    name: str


class _NamedNode(Struct):
    metadata: _NodeMetadata


class _NodeList(Struct):
    items: list[_NamedNode] | None = None


class ExtenderArgs(Struct, frozen=True):
    """`ExtenderArgs` of kube-scheduler: either whole nodes or their names."""

    pod: Object
    nodes: Object | None = None
    nodenames: list[str] | None = None

    @property
    def names(self) -> list[str]:
        if self.nodes is not None:
            return [node.metadata.name for node in msgspec.convert(self.nodes, _NodeList).items or ()]
        return self.nodenames or []

    @property
    def whole_nodes(self) -> list[Object]:
        """The nodes where they are whole."""
        return [] if self.nodes is None else self.nodes.get("items") or []

    def check(self) -> None:
        """Raises ValidationError for nodes that kube-scheduler does not send."""
        _ = self.names


class _Victims(Struct):
    pods: list[Object] | None = None


class _VictimIdentity(Struct):
    uid: str


class _WholeVictim(Struct):
    metadata: _VictimIdentity


class PreemptArgs(Struct, frozen=True):
    """`ExtenderPreemptionArgs` of kube-scheduler: victims as whole pods, or by UID from one with a node cache."""

    pod: Object
    nodenametovictims: dict[str, Object] | None = None
    nodenametometavictims: dict[str, Object] | None = None

    @property
    def victims(self) -> dict[str, list[str]]:
        """By node, the UIDs of the pods that kube-scheduler would evict."""
        by_uid = {
            node: [msgspec.convert(_lower_case(pod), _VictimIdentity).uid for pod in _pods_of(victims)]
            for node, victims in (self.nodenametometavictims or {}).items()
        }
        return by_uid | {
            node: [msgspec.convert(pod, _WholeVictim).metadata.uid for pod in _pods_of(victims)]
            for node, victims in (self.nodenametovictims or {}).items()
        }

    def check(self) -> None:
        """Raises BadInput or ValidationError for a pod or for victims that kube-scheduler does not send."""
        check_pod(self.pod)
        _ = self.victims


class Decoder:
    """Decodes requests. What kube-scheduler sends again is recognized by its bytes: lists of nodes, and pods."""

    def __init__(self) -> None:
        self.lists = NodeLists()
        self._pods: deque[tuple[bytes, Object]] = deque(maxlen=_PODS)

    def decode(self, body: bytes, kind: type[_Args]) -> _Args:
        """Arguments, whatever the case of their field names. Raises BadInput.

        kube-scheduler writes "Pod", "NodeNames" and "PodUID", because its types have no JSON names. Older versions and
        other programs write different names, and Go accepts all of them.
        """
        try:
            return self._decode(body, kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(str(error)) from error

    def _decode(self, body: bytes, kind: type[_Args]) -> _Args:
        rest, names = self.lists.split(body) if kind is ExtenderArgs else (body, None)
        parts = msgspec.json.decode(rest, type=dict[str, msgspec.Raw])
        given = {name.lower(): value for name, value in parts.items()}
        decoded = {
            field.name: self._field(field, given[field.encode_name])
            for field in _fields(kind)
            if field.encode_name in given
        }
        if names is not None:
            decoded["nodenames"] = names
        missing = [field.name for field in _fields(kind) if field.required and field.name not in decoded]
        if missing:
            raise BadInput(f"{missing[0]} is missing")
        args = kind(**decoded)
        args.check()
        return args

    def _field(self, field: FieldInfo, written: msgspec.Raw) -> Any:
        if field.name == "nodenames":
            return self.lists.read(written)
        if field.name == "pod":
            return self._pod(bytes(written))
        return msgspec.json.decode(written, type=field.type)

    def _pod(self, written: bytes) -> Object:
        """The pod, which nothing changes."""
        for known, pod in self._pods:
            if known == written:
                return pod
        decoded = msgspec.json.decode(written, type=Object)
        check_pod(decoded)
        if len(written) <= _MAX_POD:
            self._pods.appendleft((written, decoded))
        return decoded


def filter_result(args: ExtenderArgs, result: FilterResult, lists: NodeLists) -> Object:
    """`ExtenderFilterResult`, with whole nodes if kube-scheduler sent whole nodes.

    kube-scheduler 1.20 reads only `failedNodes`. For a node in both lists, newer versions use the other one.
    """
    message: Object = {
        "failedNodes": {**result.unresolvable, **result.failed},
        "failedAndUnresolvableNodes": result.unresolvable,
        "error": result.error,
    }
    if args.nodes is None:
        return message | {"nodenames": lists.write(result.fitting)}
    fitting = set(result.fitting)
    items = [node for node in args.nodes.get("items") or () if node["metadata"]["name"] in fitting]
    return message | {"nodes": {**args.nodes, "items": items}}


def _pods_of(victims: Object) -> list[Object]:
    return msgspec.convert(_lower_case(victims), _Victims).pods or []


def _lower_case(fields: Mapping[str, Any]) -> Object:
    return {name.lower(): value for name, value in fields.items()}


@cache
def _fields(kind: type[Any]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)
