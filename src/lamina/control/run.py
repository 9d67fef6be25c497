"""The control part as a running program: connect, define, read the cluster, serve, register, and stop cleanly.

Several replicas may run. One leads and answers; the others keep their ledgers warm, and are not ready.
"""

import asyncio
import contextlib
import gc
import json
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lamina.control import configuration, crds, doubts, metrics_of_quotas, quota_status
from lamina.control.admission_service import AdmissionService
from lamina.control.background import Background
from lamina.control.beginning import begin
from lamina.control.binding import Binder
from lamina.control.capacity import Capacity
from lamina.control.certificate_store import CertificateStore
from lamina.control.decisions import Decisions
from lamina.control.extender_service import ExtenderService
from lamina.control.gangs import Gangs
from lamina.control.leader_label import LeaderLabel
from lamina.control.leadership import Leadership
from lamina.control.ledger import Ledger
from lamina.control.metrics import Metrics
from lamina.control.packing import Packing
from lamina.control.pod_locks import PodLocks
from lamina.control.preemption import Preemption
from lamina.control.quotas import Quotas
from lamina.control.readiness import Readiness
from lamina.control.registration import Registration, client_config, served_names
from lamina.control.settings import ControlSettings
from lamina.control.turns import Turns
from lamina.control.watching import Watching
from lamina.control.webhook_configuration import PATH
from lamina.errors import BadInput
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.listening import Address, listening

log = logging.getLogger(__name__)

_TICK_S = 5.0
_QUOTAS_S = 1.0


async def run(settings: ControlSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadInput and Outside for what prevents the start."""
    kube = await connect(settings.kubeconfig, context=settings.context, again_s=AGAIN_S)
    try:
        await serve(kube, settings, _stop_signal())
    finally:
        await kube.close()


async def serve(kube: Kube, settings: ControlSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set."""
    now = asyncio.get_running_loop().time
    events, background = EventRecorder(kube, "lamina", now=time.time), Background()
    config = await begin(kube, settings, events, stop)
    if config is None:
        return
    if settings.config is not None:
        follow_config = partial(configuration.follow_file, settings.config, config)
    else:
        follow_config = partial(configuration.follow_config_map, kube, config, events)
    await crds.apply(kube)
    capacity, quotas, locks = Capacity(config), Quotas(), PodLocks()
    ledger = capacity.ledger
    metrics = Metrics(
        ledger, lambda: config.value.metrics, lambda: metrics_of_quotas.families(quotas, ledger, config.value)
    )
    decisions = Decisions(capacity, quotas, config)
    gangs = Gangs(kube, capacity, decisions, config, now=now)
    watching = Watching(kube, capacity, quotas, config, now=now)
    leadership = Leadership(kube, settings.identity or socket.gethostname(), now=now, wall=time.time)
    readiness = Readiness(watching, leadership)
    binder = Binder(
        kube,
        ledger,
        decisions,
        config,
        now=now,
        wall=time.time,
        background=background,
        locks=locks,
        turns=Turns(kube, leadership.identity, catch_up=watching.catch_up, wall=time.time, uid_of=watching.uid_of_node),
        leading=lambda: leadership.leading,
    )
    extender = ExtenderService(
        decisions, binder, Preemption(kube, capacity, gangs, config), gangs, readiness, metrics, events, background
    )
    admission = AdmissionService(config, quotas, ledger, watching, metrics)
    store = CertificateStore(kube, served_names(settings), now=lambda: datetime.now(UTC))
    await store.refresh()
    async with (
        listening("the extender", extender.application(), settings.extender) as extender_at,
        listening("admission", admission.application(), settings.admission, store.context) as admission_at,
        _looked_at(extender, settings),
        asyncio.TaskGroup() as group,
    ):
        registration = Registration(kube, config, store, client_config(settings, admission_at.port))
        work = (
            follow_config(),
            watching.run(),
            leadership.run(),
            LeaderLabel(kube, leadership.identity).run(lambda: bool(readiness)),
            _tick(kube, ledger, locks, gangs, now, readiness),
            _tell_quotas(kube, quotas, ledger, config, readiness),
            registration.run(lambda: bool(readiness)),
            _settle_in(watching),
            _learn(watching, decisions.packing),
        )
        tasks = [group.create_task(each) for each in work]
        if settings.addresses_file is not None:
            _write_addresses(settings.addresses_file, extender_at, admission_at)
        log.info("The extender listens on %s, admission on %s", extender_at, admission_at)
        await stop.wait()
        for task in tasks:
            task.cancel()
    await background.drain()
    await leadership.step_down()


@contextlib.asynccontextmanager
async def _looked_at(extender: ExtenderService, settings: ControlSettings) -> AsyncIterator[None]:
    """Serve probes and metrics at an address of their own, where there is to be one."""
    if settings.metrics is None:
        yield
        return
    async with listening("metrics", extender.looking(), settings.metrics):
        yield


async def _settle_in(watching: Watching) -> None:
    """Spare the garbage collector what was read at the start: a walk over a large cluster takes tenths of a second."""
    await watching.rebuilt.wait()
    gc.collect()
    gc.freeze()


async def _learn(watching: Watching, packing: Packing) -> None:
    """Follow the pods that come, from those that exist on, until cancelled."""
    await watching.rebuilt.wait()
    await packing.follow()


async def _tell_quotas(
    kube: Kube, quotas: Quotas, ledger: Ledger, config: configuration.Configuration, readiness: Readiness
) -> None:
    """Keep the status of quotas true while this instance leads, until cancelled."""
    while True:
        await asyncio.sleep(_QUOTAS_S)
        if readiness:
            await quota_status.tell(kube, quotas, ledger, config.value)


async def _tick(
    kube: Kube, ledger: Ledger, locks: PodLocks, gangs: Gangs, now: Callable[[], float], readiness: Readiness
) -> None:
    """Let reservations lapse, and doubts be settled by who leads, until cancelled."""
    while True:
        await asyncio.sleep(_TICK_S)
        ledger.tick(now())
        gangs.tick()
        if readiness:
            await doubts.settle(kube, ledger, locks, now)


def _write_addresses(path: Path, extender: Address, admission: Address) -> None:
    """Written under another name first, so that a reader finds all of it or nothing."""
    urls = {"extender": f"http://{extender}", "admission": f"https://{admission}{PATH}"}
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_text(json.dumps(urls))
        draft.replace(path)
    except OSError as error:
        raise BadInput(f"the addresses cannot be written to {path}: {error.strerror}") from error


def _stop_signal() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
