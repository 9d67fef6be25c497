"""What is sent of one pod or one GPU when a person looks at it, and what a viewer may see of that.

It is too much to be sent of all of them all the time: events, readings of hours, and the commands to act.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct, structs

from lamina.errors import Outside
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.commands import ShellCommand, commands_for_gpu, commands_for_pod
from lamina.operations.dashboard.document import GpuCard, NodeCard
from lamina.operations.dashboard.history import UsePoints
from lamina.operations.dashboard.holders import HeldSpan
from lamina.operations.dashboard.past import GpuPast, Past, PodPast
from lamina.operations.dashboard.viewers import EVERYTHING, OTHERS, ViewerAccess
from lamina.ports.clock import Clock, within
from lamina.ports.kube import EVENTS, Kube, Object
from lamina.ports.kube.moments import seconds_of

MAX_EVENTS = 50
MAX_TEXT = 1024
MAX_PODS = 200
"""Of one question about use."""
_TIMEOUT_S = 5.0
_AT_ONCE = 8
_OF_NODES = "default"
"""The namespace of events about nodes."""
MayList = Callable[[str], Awaitable[bool]]
"""Whether the viewer may list events of this namespace."""


class SeenEvent(Struct, frozen=True, kw_only=True):
    """An event of Kubernetes, with the last moment in seconds since the epoch. `about` is `pod` or `node`."""

    about: str
    at: int | None
    type: str
    reason: str
    message: str
    count: int


class Details(Struct, frozen=True, kw_only=True):
    """Of one pod or GPU. `problem` says which events are missing, and why."""

    events: tuple[SeenEvent, ...]
    problem: str
    commands: tuple[ShellCommand, ...]
    history: PodPast | GpuPast


async def all_events(namespace: str) -> bool:
    """The rights of who runs the command: the API server answers itself."""
    return True


class DetailReader:
    """Of what a board has."""

    def __init__(self, board: Board, clock: Clock, kube: Kube, past: Past) -> None:
        self._board = board
        self._clock = clock
        self._kube = kube
        self._past = past
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def pod(self, uid: str, access: ViewerAccess = EVERYTHING, may: MayList = all_events) -> Details | None:
        """Of a pod; None where there is none that the viewer may see."""
        card = self._board.current.document.pods.get(uid)
        if card is None or not access.sees(card.namespace):
            return None
        questions = [("pod", card.namespace, f"involvedObject.uid={uid}")]
        if card.node and access.nodes:
            questions.append(_of_node(card.node))
        events, problem = await self._events(questions, may)
        history = await self._past.pod(uid, card)
        return Details(events=events, problem=problem, commands=commands_for_pod(card), history=history)

    async def gpu(self, uuid: str, access: ViewerAccess = EVERYTHING, may: MayList = all_events) -> Details | None:
        """Of a GPU; None where there is none that the viewer may see."""
        found = self._gpu(uuid) if access.nodes else None
        if found is None:
            return None
        node, gpu = found
        events, problem = await self._events([_of_node(node.name)], may)
        past = await self._past.gpu(uuid)
        history = structs.replace(past, holders=[_seen(holder, access) for holder in past.holders])
        return Details(events=events, problem=problem, commands=commands_for_gpu(node, gpu), history=history)

    def use(self, uids: Iterable[str], access: ViewerAccess = EVERYTHING) -> dict[str, UsePoints]:
        """The last minutes of the shares of pods that the viewer may see."""
        pods = self._board.current.document.pods
        shown = [uid for uid in uids if uid in pods and access.sees(pods[uid].namespace)]
        return {uid: self._board.history.recent(uid) for uid in shown[:MAX_PODS]}

    def _gpu(self, uuid: str) -> tuple[NodeCard, GpuCard] | None:
        nodes = self._board.current.document.nodes.values()
        return next(((node, gpu) for node in nodes for gpu in node.gpus if gpu.uuid == uuid), None)

    async def _events(self, questions: list[tuple[str, str, str]], may: MayList) -> tuple[tuple[SeenEvent, ...], str]:
        found: list[SeenEvent] = []
        problems: list[str] = []
        for about, namespace, fields in questions:
            if not await may(namespace):
                problems.append(f"you may not list events of the {about} (namespace {namespace})")
                continue
            try:
                async with self._free:
                    listing = await within(
                        self._clock, _TIMEOUT_S, self._kube.list(EVENTS, namespace=namespace, fields=fields)
                    )
            except (Outside, TimeoutError) as error:
                problems.append(f"events of the {about} cannot be read: {str(error) or 'no answer'}")
                continue
            found += [_event(about, each) for each in listing.items]
        found.sort(key=lambda event: -(event.at or 0))
        return tuple(found[:MAX_EVENTS]), "; ".join(problems)


def _of_node(name: str) -> tuple[str, str, str]:
    return "node", _OF_NODES, f"involvedObject.kind=Node,involvedObject.name={name}"


def _event(about: str, event: Object) -> SeenEvent:
    series: Mapping[str, object] = event.get("series") or {}
    moments = (
        event.get("lastTimestamp"),
        series.get("lastObservedTime"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
    )
    known = [seconds for moment in moments if (seconds := seconds_of(str(moment or ""))) is not None]
    return SeenEvent(
        about=about,
        at=int(known[0]) if known else None,
        type=str(event.get("type") or "")[:MAX_TEXT],
        reason=str(event.get("reason") or "")[:MAX_TEXT],
        message=str(event.get("message") or "")[:MAX_TEXT],
        count=int(event.get("count") or 1),
    )


def _seen(holder: HeldSpan, access: ViewerAccess) -> HeldSpan:
    """Without names where the viewer may not list them. What a claim holds is in the namespace of no pod."""
    if access.everywhere or (holder.namespace and access.sees(holder.namespace)):
        return holder
    return structs.replace(holder, pod="", name=OTHERS, namespace="")
