"""Follow the cluster and post what it is like.

Everything is listed, then watched. Whatever interrupts one of the watches ends all of them: the board says why, and
everything is listed again. A watch can stay silent for long, so the API server is also asked at short intervals whether
it still answers, and a silent connection gives way to a new one. So the board never shows as current what is not.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from lamina.config_source.live import configured_by
from lamina.configuration import CONFIG_MAP
from lamina.core.component_names import documentation
from lamina.errors import BadInput, Outside
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.history import HealthHistory
from lamina.operations.dashboard.pod_cards import PodCards
from lamina.operations.dashboard.view import condition_of, document_of
from lamina.ports.clock import Clock, within
from lamina.ports.kube import (
    CONFIG_MAPS,
    EVENTS,
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    Kube,
    NotFound,
    Object,
    Refused,
    Resource,
    Unreachable,
)
from lamina.ports.kube.follow import BOOKMARK, DELETED, SYNCED, FollowedCollection, identity
from lamina.ports.polling import RetryPauses
from lamina.report.cluster_reader import NOT_INSTALLED, ClusterObjects, ClusterReader
from lamina.report.pod_claims import NO_CLAIMS, read_claims
from lamina.report.pods import PodRow
from lamina.report.refusals import REASON, last_refusals, refused_workloads
from lamina.report.waiting_groups import Needed, read_waiting

log = logging.getLogger(__name__)

ASKED_EVERY_S = 2.0
ANSWER_S = 5.0
"""How long the API server may take to answer before it counts as lost."""
POST_EVERY_S = 0.5
"""The shortest pause between two documents. One that takes longer to compute is followed by a pause as long."""
WORKLOADS_EVERY_S = 10.0
"""How often workloads are listed. They are many, and those whose pods are refused stay so until a person changes them,
so they are not watched."""
CLAIMS_EVERY_S = 3.0
"""How often what ResourceClaims are read from is listed. A server may not have it, and a user may not read it."""
GROUPS_EVERY_S = 3.0
"""How often the pod groups of pods that wait are read."""
_PAUSES_S = (0.5, 1.0, 2.0, 3.0)
_CONDITION = "condition"
"""All that is read of a node."""


def _without_managers(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _trimmed_node(node: Object) -> Object:
    """The part that is read. Nodes report themselves often, and little of that changes."""
    return {"metadata": identity(node), _CONDITION: condition_of(node)}


class _Followed(NamedTuple):
    resource: Resource
    namespace: str = ""
    fields: str = ""
    trim: Callable[[Object], Object] = _without_managers

    def collection(self, kube: Kube) -> FollowedCollection:
        return FollowedCollection(kube, self.resource, namespace=self.namespace, fields=self.fields, trim=self.trim)


_FOLLOWED = (
    _Followed(INVENTORIES),
    _Followed(GRANTS),
    _Followed(PODS),
    _Followed(NODES, trim=_trimmed_node),
    _Followed(RESOURCE_QUOTAS),
    _Followed(EVENTS, fields=f"reason={REASON}"),
)
_Key = tuple[str, str]


_Compute = Callable[[ClusterObjects, list[Object], list[Object], list[PodRow]], ClusterDocument]
"""From nodes, events and refused workloads next to what a view is computed from."""


class ClusterFeed:
    """`compute` makes the document; it runs in a thread of its own."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        board: Board,
        compute: "_Compute | None" = None,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._board = board
        self._compute = compute or partial(_document, ClusterReader(), PodCards())
        self._objects: dict[Resource, dict[_Key, Object]] = {}
        self._claims = NO_CLAIMS
        self._needed: Needed = {}
        self._refused: list[PodRow] = []
        """The workloads whose pods are refused, as they were listed last."""
        self._health = HealthHistory()
        self._changed = asyncio.Event()
        self._settled = False
        """Whether everything could be watched once, so that a refusal is news and not a missing right."""

    async def run(self) -> None:
        """Follow until canceled. Raises BadInput where Lamina is not installed, Refused where rights are missing, and
        Unreachable where no server answers, if that is so from the start."""
        pauses = RetryPauses(_PAUSES_S)
        while True:
            try:
                await self._follow_all(pauses)
            except Outside as error:
                if not self._board.current.ready or not (self._settled or isinstance(error, Unreachable)):
                    raise _at_start(error) from error
                self._lose(str(error))
                await self._clock.sleep(pauses.failed())

    async def _follow_all(self, pauses: RetryPauses) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for followed in (*_FOLLOWED, self._configuration()):
                    listed = asyncio.Event()
                    group.create_task(self._follow(followed, listed))
                    await listed.wait()
                self._claims = await read_claims(self._kube)
                group.create_task(self._ask(pauses))
                group.create_task(self._list_workloads())
                group.create_task(self._list_claims())
                group.create_task(self._read_groups())
                group.create_task(self._post())
        except ExceptionGroup as failed:
            raise _first(failed) from failed

    def _configuration(self) -> _Followed:
        return _Followed(CONFIG_MAPS, self._kube.lamina_namespace, f"metadata.name={CONFIG_MAP}")

    async def _follow(self, followed: _Followed, listed: asyncio.Event) -> None:
        """A kind of which nothing is heard for long, such as a reason of events, is listed again alone."""
        collection = followed.collection(self._kube)
        objects = self._objects[followed.resource] = {}
        while True:
            async with contextlib.aclosing(collection.events()) as events:
                async for kind, obj in events:
                    if kind == SYNCED:
                        listed.set()
                        self._changed.set()
                    elif kind != BOOKMARK:
                        before = objects.pop(_key(obj), None)
                        if kind != DELETED:
                            objects[_key(obj)] = obj
                        if before is None or kind == DELETED or _shown(before) != _shown(obj):
                            self._changed.set()
            await self._clock.sleep(_PAUSES_S[0])

    async def _ask(self, pauses: RetryPauses) -> None:
        """Raises Outside as soon as the API server does not answer."""
        while True:
            await self._clock.sleep(ASKED_EVERY_S)
            question = self._kube.list(
                CONFIG_MAPS, namespace=self._kube.lamina_namespace, fields=f"metadata.name={CONFIG_MAP}"
            )
            try:
                await within(self._clock, ANSWER_S, question)
            except TimeoutError as error:
                raise Unreachable(f"the Kubernetes server has not answered for {ANSWER_S:.0f} s") from error
            pauses.succeeded()
            self._settled = True

    async def _list_workloads(self) -> None:
        """Those that may not be listed are left out."""
        while True:
            config_map = next(iter(self._objects[CONFIG_MAPS].values()), None)
            refused, _ = await refused_workloads(self._kube, configured_by(config_map).config, None)
            if refused != self._refused:
                self._refused = refused
                self._changed.set()
            await self._clock.sleep(WORKLOADS_EVERY_S)

    async def _list_claims(self) -> None:
        while True:
            claims = await read_claims(self._kube)
            if claims != self._claims:
                self._claims = claims
                self._changed.set()
            await self._clock.sleep(CLAIMS_EVERY_S)

    async def _read_groups(self) -> None:
        """Those of which a pod waits."""
        while True:
            needed = await read_waiting(self._kube, list(self._objects[PODS].values()))
            if needed != self._needed:
                self._needed = needed
                self._changed.set()
            await self._clock.sleep(GROUPS_EVERY_S)

    async def _post(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            objects = {resource: list(found.values()) for resource, found in self._objects.items()}
            config_map = next(iter(objects[CONFIG_MAPS]), None)
            read = ClusterObjects(
                objects[INVENTORIES], objects[GRANTS], objects[PODS], objects[RESOURCE_QUOTAS], config_map, None,
                self._claims, self._needed,
            )  # fmt: skip
            started = self._clock.monotonic()
            try:
                document = await asyncio.to_thread(self._compute, read, objects[NODES], objects[EVENTS], self._refused)
                now = self._clock.wall()
                self._board.objects = read
                self._board.post(self._health.noted(now, document), now)
            except Exception as error:
                log.exception("The view could not be computed")
                self._lose(f"this command could not compute the view, which is a defect: {error!r}")
            await self._clock.sleep(max(POST_EVERY_S, self._clock.monotonic() - started))

    def _lose(self, reason: str) -> None:
        self._health.lose(self._clock.wall(), "the cluster could not be followed")
        self._board.allocation.lose(self._clock.wall())
        self._board.lose(reason)


def _document(
    reader: ClusterReader,
    cards: PodCards,
    objects: ClusterObjects,
    nodes: list[Object],
    events: list[Object],
    refused: list[PodRow],
) -> ClusterDocument:
    conditions = {node["metadata"]["name"]: node[_CONDITION] for node in nodes}
    return document_of(reader.view_of(objects), conditions, last_refusals(events), cards, refused)


def _shown(obj: Object) -> Any:
    """What of an object can change the document."""
    return obj.get(_CONDITION) or obj


def _key(obj: Object) -> _Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _first(failed: ExceptionGroup[Exception]) -> Exception:
    error = failed.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


def _at_start(error: Outside) -> Exception:
    if isinstance(error, NotFound):
        return BadInput(NOT_INSTALLED)
    if isinstance(error, Refused):
        return type(error)(
            f"{error}; {documentation('reference/rbac-commands.md')} lists the rights that `lamina dashboard` needs"
        )
    return error
