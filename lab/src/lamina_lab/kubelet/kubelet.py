"""The kubelet of one node: a worker per pod, and the services that the workers share."""

import asyncio
import contextlib
import shutil
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from lamina.errors import Outside
from lamina.ports.clock import SystemClock
from lamina.ports.kube import PODS, Kube, Object, follow
from lamina.ports.kube.client import connect
from lamina.ports.kube.follow import DELETED, SYNCED
from lamina_lab.kubelet.claims.drivers import Drivers
from lamina_lab.kubelet.claims.manager import ClaimManager
from lamina_lab.kubelet.containers.instances import Runtime
from lamina_lab.kubelet.containers.orphans import become_subreaper, kill_marked
from lamina_lab.kubelet.containers.starter import Starter
from lamina_lab.kubelet.device_manager import pod_resources
from lamina_lab.kubelet.device_manager.manager import DeviceManager
from lamina_lab.kubelet.model.settings import Settings
from lamina_lab.kubelet.pods import recovery
from lamina_lab.kubelet.pods.worker import PodWorker, Services
from lamina_lab.kubelet.reporting.events import Events
from lamina_lab.kubelet.reporting.node import NodeReporter
from lamina_lab.kubelet.serving.server import KubeletServer

STOP_GRACE_S = 1.0
"""Grace period of containers when the kubelet is stopped: stopping a lab does not take 30 s."""
WITHDRAW_S = 0.5


class Kubelet:
    """An asynchronous context manager: on exit it has ended every container."""

    def __init__(self, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.workers: dict[str, PodWorker] = {}
        self._now = now
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Kubelet":
        settings = self.settings
        become_subreaper()
        settings.root_dir.mkdir(parents=True, exist_ok=True)
        if killed := kill_marked(settings.marker):
            print(f"killed leftover processes of an earlier kubelet of {settings.node}: {killed}", flush=True)
        async with contextlib.AsyncExitStack() as stack:
            kube = await connect(settings.kubeconfig)
            stack.push_async_callback(kube.close)
            self._devices = DeviceManager(settings.kubelet_dir / "device-plugins", self._now, self._poke)
            drivers = Drivers(settings.kubelet_dir / "plugins_registry", self._refresh_pods)
            stack.push_async_callback(drivers.close)
            self._claims = ClaimManager(settings.kubelet_dir, kube, drivers)
            self._reporter = NodeReporter(kube, settings, self._devices.ledger.amounts, self._now)
            runtime = Runtime(settings.marker)
            events = Events(kube, self._now)
            self._services = Services(
                settings=settings,
                kube=kube,
                devices=self._devices,
                claims=self._claims,
                starter=Starter(settings, kube, kube.server, self._devices, self._claims),
                runtime=runtime,
                events=events,
                now=self._now,
            )
            stack.push_async_callback(self._devices.stop)
            await self._devices.start()
            lister = pod_resources.PodResourcesService(
                self._devices.ledger, self._claims.devices, self._listed_pods, settings.cpus
            )
            grpc_server = await pod_resources.serve(lister, settings.kubelet_dir / "pod-resources")
            stack.push_async_callback(grpc_server.stop, None)
            await stack.enter_async_context(KubeletServer(settings.socket, self.find, runtime, self._now))
            stack.push_async_callback(runtime.stop, STOP_GRACE_S)
            stack.push_async_callback(self._end_loops)
            self._loops = [
                asyncio.create_task(self._reporter.run(), name="node"),
                asyncio.create_task(events.run(), name="events"),
                asyncio.create_task(self._follow(kube), name="pods"),
                asyncio.create_task(drivers.run(), name="drivers"),
            ]
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def broken(self) -> None:
        """Raise the error of a loop that ended. Otherwise a kubelet would continue without one of its loops."""
        ended, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        for loop in ended:
            loop.result()

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """The pod with that name; of two, the later one."""
        wanted = (namespace, name)
        found = [
            worker
            for worker in self.workers.values()
            if (worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"]) == wanted
        ]
        return found[-1] if found else None

    async def _follow(self, kube: Kube) -> None:
        """Follow the pods bound to this node while the kubelet runs. The first list is processed as a whole."""
        first: list[Object] | None = []
        async for kind, pod in follow(kube, SystemClock(), PODS, fields=f"spec.nodeName={self.settings.node}"):
            if first is not None and kind == SYNCED:
                self._adopt_pods(first)
                first = None
            elif first is not None:
                first.append(pod)
            elif kind == DELETED:
                self._gone(pod)
            elif kind != SYNCED:
                self._seen(pod)

    def _adopt_pods(self, pods: list[Object]) -> None:
        """Continue with the pods of an earlier kubelet, oldest first."""
        if running := [pod for pod in pods if not recovery.is_finished(pod) and recovery.was_admitted(pod)]:
            print(f"{len(running)} pods ran under an earlier kubelet; restart policies decide on them", flush=True)
        self._devices.retain({pod["metadata"]["uid"] for pod in pods if not recovery.is_finished(pod)})
        there = {pod["metadata"]["uid"] for pod in pods}
        for uid in self._claims.strangers(there):
            self._tasks[uid] = asyncio.create_task(self._claims.unprepare_until_done(uid), name=f"claims of {uid}")
        self._sweep(there)
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp"))):
            self._seen(pod)

    def _seen(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if worker := self.workers.get(uid):
            worker.update(pod)
            return
        worker = PodWorker(pod, self._services)
        self.workers[uid] = worker
        self._tasks[uid] = asyncio.create_task(self._work(worker), name=f"pod {uid}")

    def _gone(self, pod: Object) -> None:
        if worker := self.workers.get(pod["metadata"]["uid"]):
            worker.remove()

    async def _work(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        except Exception:
            # A failure of one pod does not affect others. Its processes end with the kubelet.
            traceback.print_exc()
            raise
        del self.workers[worker.uid]
        del self._tasks[worker.uid]
        shutil.rmtree(self.settings.pod_dir(worker.uid), ignore_errors=True)

    def _listed_pods(self) -> Iterable[Any]:
        return [worker.pod for worker in self.workers.values() if worker.admitted]

    def _sweep(self, there: set[str]) -> None:
        """Remove the directories of deleted pods."""
        root = self.settings.root_dir / "pods"
        for entry in root.iterdir() if root.is_dir() else ():
            if entry.name not in there:
                shutil.rmtree(entry, ignore_errors=True)

    def _poke(self) -> None:
        self._reporter.refresh()

    def _refresh_pods(self) -> None:
        for worker in self.workers.values():
            worker.refresh()

    async def _end_loops(self) -> None:
        with contextlib.suppress(Outside, TimeoutError):
            async with asyncio.timeout(WITHDRAW_S):
                await self._reporter.mark_not_ready()
        tasks = [*self._loops, *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
