"""The messages of kube-scheduler's extender protocol for filter and prioritize, and the decoding of all arguments."""

from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from lamina.controller.extender.node_lists import NodeLists
from lamina.controller.scheduling.decisions import FilterResult
from lamina.dialects import check_pod
from lamina.errors import BadInput
from lamina.ports.kube import Object


class Arguments(Protocol):
    """The arguments of a verb, whose check raises BadInput or ValidationError for what kube-scheduler does not send."""

    def check(self) -> None: ...


_Args = TypeVar("_Args", bound=Arguments)


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
        """Raises BadInput or ValidationError for a pod or nodes that kube-scheduler does not send."""
        check_pod(self.pod)
        _ = self.names


class HostPriority(Struct, frozen=True, gc=False):
    """`HostPriority` of kube-scheduler."""

    host: str
    score: int


def decode_args(body: bytes, kind: type[_Args], lists: NodeLists) -> _Args:
    """Arguments, whatever the case of their field names. Raises BadInput.

    `lists` read the names of nodes. kube-scheduler writes "Pod", "NodeNames" and "PodUID", because its types have no
    JSON names. Older versions and other programs write different names, and Go accepts all of them.
    """
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        given = {name.lower(): value for name, value in parts.items()}
        decoded = {
            field.name: _decoded(field, given[field.encode_name], lists)
            for field in _fields(kind)
            if field.encode_name in given
        }
        missing = [field.name for field in _fields(kind) if field.required and field.name not in decoded]
        if missing:
            raise BadInput(f"{missing[0]} is missing")
        args = kind(**decoded)
        args.check()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(str(error)) from error
    return args


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


def _decoded(field: FieldInfo, written: msgspec.Raw, lists: NodeLists) -> Any:
    return lists.read(written) if field.name == "nodenames" else msgspec.json.decode(written, type=field.type)


@cache
def _fields(kind: type[Any]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)
