"""Keeps the accounts of the node's workloads: looks at regular intervals, and writes what it counted.

Only what is on disk is served. A counter that went back when the agent starts again would count twice in Prometheus.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.agent.chargeback.amounts import AccountedGpu, UsageSample
from lamina.agent.chargeback.book import EMPTY, AccountBook, BookState, idle_pods
from lamina.agent.chargeback.histories import ContainerHistory, Histories, HistoryKey, MomentaryUse
from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.metrics.collection import NodeReader
from lamina.agent.state.observed import PodOwners
from lamina.core.quantities import MIB
from lamina.core.workloads import UNKNOWN
from lamina.dialects.samples import MigSample, ShareSample
from lamina.ports.files import Files
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

_VERSION = 1


class WrittenAccounts(Struct, frozen=True, kw_only=True):
    """The accounts of workloads, and the histories of their containers."""

    book: BookState = EMPTY
    histories: tuple[ContainerHistory, ...] = ()


NOTHING_WRITTEN = WrittenAccounts()


class _File(WrittenAccounts, frozen=True, kw_only=True):
    version: int


class AccountJournal:
    """One file, which is always whole."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def read(self) -> WrittenAccounts:
        """What was written last. Accounts begin at zero where that cannot be used. Raises Outside."""
        content = self._files.read(self._path)
        if content is None:
            return NOTHING_WRITTEN
        try:
            file = msgspec.json.decode(content, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            log.warning("Accounts of workloads begin at zero, because %s cannot be used: %s", self._path, problem)
            return NOTHING_WRITTEN
        if file.version != _VERSION:
            log.warning("Accounts of workloads begin at zero, because %s has version %s", self._path, file.version)
            return NOTHING_WRITTEN
        return WrittenAccounts(book=file.book, histories=file.histories)

    def write(self, accounts: WrittenAccounts) -> None:
        """Raises Outside."""
        self._files.write(
            self._path, msgspec.json.encode(_File(version=_VERSION, book=accounts.book, histories=accounts.histories))
        )


EVERY_S = 15.0


class Accountant:
    """`written` is what is on disk."""

    def __init__(self, node: NodeContext, offers: NodeOfferStore, reader: NodeReader, owners: PodOwners) -> None:
        """Raises Outside if the accounts on disk cannot be read."""
        self._node = node
        self._offers = offers
        self._reader = reader
        self._owners = owners
        self._journal = AccountJournal(node.settings.accounts, node.files)
        self._clock = node.clock
        self.written: WrittenAccounts = self._journal.read()
        self._book = AccountBook(self.written.book)
        self._histories = Histories(self.written.histories)
        self._looked_at: float | None = None

    async def run(self) -> None:
        failures = FailureLog(log, "Accounts of workloads stand still: %s")
        await poll(self.reconcile, self._clock, every_s=EVERY_S, delay_s=EVERY_S, failures=failures)

    async def reconcile(self) -> None:
        """Count the time since the last look. Raises Outside if it cannot be written, which the next look repeats."""
        readings = await self._reader.read()
        gpus = {
            uuid: AccountedGpu(gpu.facts.name, (gpu.facts.memory_mib or 0) * MIB)
            for uuid, gpu in self._offers.state.gpus.items()
        }
        found = list(usage_samples(readings.shares, readings.parts, self._owners))
        wall, now = self._clock.wall(), self._clock.monotonic()
        passed = self._passed(wall, now)
        self._looked_at = now
        self._book.observe(gpus, found, passed_s=passed, now=wall)
        self._histories.observe(list(uses(readings.shares, found)), passed_s=passed, now=wall)
        state = WrittenAccounts(book=self._book.state, histories=self._histories.state)
        self._journal.write(state)
        self.written = state
        idle = idle_pods(state.book.busy, self._node.config.idle_shares, wall)
        if idle != self._offers.state.idle:
            self._offers.update(idle=idle)

    def _passed(self, wall: float, now: float) -> float:
        """Seconds since the last look. Of the time before the start, only the wall clock knows."""
        if self._looked_at is not None:
            return now - self._looked_at
        return wall - self.written.book.at if self.written.book.at else 0.0


def usage_samples(
    shares: Sequence[ShareSample], parts: Mapping[str, MigSample], owners: PodOwners
) -> Iterator[UsageSample]:
    """What each pod has of each GPU. Init containers end before the others begin, so the larger amount counts."""
    grouped: dict[tuple[str, str], list[ShareSample]] = {}
    for share in shares:
        part = parts.get(share.gpu)
        grouped.setdefault((share.pod_uid, part.gpu if part else share.gpu), []).append(share)
    for (uid, gpu), of_pod in grouped.items():
        owner = owners.get(uid)
        used = [share.used for share in of_pod]
        own = [share.busy_percent for share in of_pod if share.enforcer == "whole"]
        counters = {share.container: share.busy_s for share in of_pod if share.busy_s is not None}
        by_facade = all(share.enforcer in ("facade", "driver") and share.busy_is_whole for share in of_pod)
        counted = by_facade and len(counters) == len({share.container for share in of_pod})
        yield UsageSample(
            namespace=of_pod[0].namespace,
            pod_uid=uid,
            gpu=gpu,
            memory_bytes=_larger([(share.init, share.guaranteed) for share in of_pod]),
            cores=_larger([(share.init, share.cores_percent or 0) for share in of_pod]),
            used_bytes=None if None in used else sum(each or 0 for each in used),
            busy_s=counters if counted else None,
            marks=None if counted else _marks(of_pod),
            busy_percent=max((percent for percent in own if percent is not None), default=None),
            workload=owner.workload,
            labels=owner.labels,
        )


def _marks(of_pod: Sequence[ShareSample]) -> Mapping[str, float] | None:
    """A number for each container of a pod that grows when it uses the GPU; None if that of one is not known."""
    marks = {share.container: share.busy_s if share.busy_is_whole else share.used_at for share in of_pod}
    by_facade = all(share.enforcer in ("facade", "driver") for share in of_pod)
    known = {container: mark for container, mark in marks.items() if mark is not None}
    return known if by_facade and len(known) == len(marks) else None


def uses(shares: Sequence[ShareSample], found: Sequence[UsageSample]) -> Iterator[MomentaryUse]:
    """What each container does whose workload and use are known. `found` are those of the pods."""
    workloads = {sample.pod_uid: sample.workload for sample in found if sample.workload != UNKNOWN}
    for share in shares:
        of = workloads.get(share.pod_uid)
        if of is not None and share.enforcer in ("facade", "driver", "whole"):
            key = HistoryKey(share.namespace, of.kind, of.name, share.container)
            known = [each for each in (share.peak, share.used) if each is not None]
            yield MomentaryUse(key, max(known, default=None), share.busy_percent)


def _larger(amounts: Sequence[tuple[bool, int]]) -> int:
    """The sum of the containers that run together, or the most that an init container has."""
    together = sum(amount for init, amount in amounts if not init)
    return max([together, *(amount for init, amount in amounts if init)])
