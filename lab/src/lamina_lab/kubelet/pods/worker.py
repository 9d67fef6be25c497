"""One pod on this node, from admission to its end: carries out the plan and reports what happened."""

import asyncio
import contextlib
import secrets
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Kube, Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.kubelet.claims.manager import ClaimManager
from lamina_lab.kubelet.containers.instances import RunningContainer, Runtime
from lamina_lab.kubelet.containers.shim_client import Exit, StartError
from lamina_lab.kubelet.containers.starter import CreateError, Starter
from lamina_lab.kubelet.device_manager.allocation import DeviceError
from lamina_lab.kubelet.device_manager.manager import DeviceManager
from lamina_lab.kubelet.model.records import Container, Kind, Running, Terminated, Waiting, containers_of, of_kind
from lamina_lab.kubelet.model.settings import Settings
from lamina_lab.kubelet.pods import pod_plan, recovery
from lamina_lab.kubelet.pods.health import ProbeRunner
from lamina_lab.kubelet.pods.status import PodFailure, PodProgress, pod_status, rejected_status
from lamina_lab.kubelet.pods.status_writer import StatusWriter
from lamina_lab.kubelet.reporting.events import Events

DEFAULT_GRACE_S = 30.0
REMOVED_GRACE_S = 2.0
"""For pods that vanished from the API server, for example by a forced deletion."""
MIN_SIDECAR_GRACE_S = 2.0
START_ERROR = 128


class Services(Struct, frozen=True, kw_only=True):
    """What pod workers share."""

    settings: Settings
    kube: Kube
    devices: DeviceManager
    claims: ClaimManager
    starter: Starter
    runtime: Runtime
    events: Events
    now: Callable[[], float]


class PodWorker:
    """`pod` is the newest known version of the pod; `admitted` says whether it holds its devices."""

    def __init__(self, pod: Mapping[str, Any], services: Services) -> None:
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self.admitted = False
        self.finished = recovery.is_finished(pod)
        self.instances: dict[str, RunningContainer] = {}
        self._services = services
        self._now = services.now
        self._recovered = recovery.was_admitted(pod)
        self.containers = recovery.restored(pod, self._now()) if self._recovered else containers_of(pod["spec"])
        self._statuses = StatusWriter(services.kube, pod)
        self._wake = asyncio.Event()
        self._removed = False
        self._failure: PodFailure | None = None
        self._end_began: float | None = None
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._stopped: set[str] = set()
        self._ends: set[asyncio.Task[None]] = set()
        status = pod.get("status") or {}
        self._conditions: list[Object] = status.get("conditions") or []
        self._began_at = seconds_of(status.get("startTime") or "") or self._now()
        self.ip = status.get("podIP") or pod_ip(self.uid)

    def update(self, pod: Mapping[str, Any]) -> None:
        """The API server has a newer version, perhaps with more ephemeral containers."""
        self.pod = pod
        known = {container.name for container in self.containers}
        self.containers += [added for added in containers_of(pod["spec"]) if added.name not in known]
        self._wake.set()

    def refresh(self) -> None:
        """Something that the pod's status says has changed."""
        self._wake.set()

    def remove(self) -> None:
        """The API server no longer has the pod."""
        self._removed = True
        self._wake.set()

    def container(self, name: str) -> Container | None:
        return next((container for container in self.containers if container.name == name), None)

    def log(self, container: str, number: int) -> Path:
        """The path of the log of instance `number` of a container, written or not."""
        return self._services.settings.log(self.uid, container, number)

    def note(self, reason: str, message: str) -> None:
        """Record a normal event of the pod."""
        self._services.events.normal(self.pod, reason, message)

    def warn(self, reason: str, message: str) -> None:
        """Record a warning event of the pod."""
        self._services.events.warning(self.pod, reason, message)

    async def run(self) -> None:
        """Returns when the pod has ended here and the API server no longer has it."""
        try:
            if not self.finished and not self._deleted and await self._admit():
                await self._live()
            self.admitted = False
            self.finished = True
            self._services.devices.release(self.uid)
            await self._services.claims.unprepare_until_done(self.uid)
            while not self._deleted:
                self._wake.clear()
                await self._wake.wait()
            if not self._removed:
                await self._statuses.delete()
        finally:
            self._statuses.close()
            for task in [*self._starts.values(), *self._ends]:
                task.cancel()

    @property
    def _deleted(self) -> bool:
        return self._removed or bool(self.pod["metadata"].get("deletionTimestamp"))

    @property
    def _policy(self) -> str:
        return str(self.pod["spec"].get("restartPolicy") or "Always")

    async def _admit(self) -> bool:
        devices = self._services.devices
        try:
            if not (self._recovered and devices.holds_all(self.pod)):
                await devices.admit(self.pod)
        except DeviceError as error:
            failure = PodFailure("UnexpectedAdmissionError", str(error))
            self._statuses.put(rejected_status(self.pod, failure, self._now()))
            self.warn(failure.reason, failure.message)
            return False
        self.admitted = True
        if self._recovered:
            for container in self.containers:
                if isinstance(container.state, Terminated) and container.state.reason == recovery.LOST:
                    message = f"Container {container.name} ended with the kubelet; its restart policy decides"
                    self.warn("KubeletRestarted", message)
        return True

    async def _live(self) -> None:
        while True:
            self._wake.clear()
            self._check_deadline()
            ending = self._deleted or self._failure is not None
            plan = pod_plan.plan(self.containers, self._policy, self._now(), ending=ending)
            self._apply(plan)
            self._publish(plan.ended)
            if plan.ended:
                return
            await self._sleep(plan.wake_at)

    def _apply(self, plan: pod_plan.PodPlan) -> None:
        for name, waiting in plan.waits.items():
            self._back_off(name, waiting)
        for name in plan.start:
            container = self._known(name)
            container.starting = True
            self._starts[name] = asyncio.create_task(self._start(container), name=f"start {name} of {self.uid}")
        if plan.stop and self._end_began is None:
            self._end_began = self._now()
        for name in plan.stop:
            self._stop(name)

    def _back_off(self, name: str, waiting: Waiting) -> None:
        container = self._known(name)
        metadata = self.pod["metadata"]
        where = f"{metadata['name']}_{metadata['namespace']}({self.uid})"
        full = Waiting(waiting.reason, f"{waiting.message} container={name} pod={where}")
        if container.state != full:
            container.wait(full)
            self.warn("BackOff", f"Back-off restarting failed container {name} in pod {where}")

    def _check_deadline(self) -> None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None and self._failure is None and self._now() >= self._began_at + seconds:
            message = "Pod was active on the node longer than the specified deadline"
            self._failure = PodFailure("DeadlineExceeded", message)
            self.note("DeadlineExceeded", message)

    async def _sleep(self, wake_at: float | None) -> None:
        """Until something happens, `wake_at` or the pod's deadline."""
        times = [wake_at] if wake_at is not None else []
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None and self._failure is None:
            times.append(self._began_at + seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(times) - self._now()) if times else None):
                await self._wake.wait()

    def _publish(self, ended: bool) -> None:
        if self._removed:
            return
        progress = PodProgress(
            addresses=(self._services.settings.node_ip, self.ip),
            started_at=self._began_at,
            ended=ended,
            failure=self._failure,
        )
        status = pod_status(self.pod, self.containers, progress, now=self._now(), before=self._conditions)
        self._conditions = status["conditions"]
        for each, container in zip(status["containerStatuses"], of_kind(self.containers, Kind.APP), strict=True):
            if health := self._services.claims.health(self.pod, container.spec):
                each["allocatedResourcesStatus"] = health
        self._statuses.put(status)

    async def _start(self, container: Container) -> None:
        """Try once to start `container`. The result is in its record."""
        end = container.latest_end
        number = container.restarts + (1 if end else 0)
        try:
            program, unknown = await self._services.starter.program(self.pod, container.spec, number, self.ip)
            if end:
                container.crash.restarting(end.finished_at, self._now())
            container.restarts = number
            container.retry.succeeded()
            container.container_id = secrets.token_hex(32)
            self.note("Created", f"Container created: {container.name}")
            shim = self._services.runtime.run(program, container.container_id)
            instance = RunningContainer(container.container_id, program, shim, self._now())
            self.instances[container.name] = instance
            await shim.started()
            self._started(container, instance, unknown)
        except CreateError as error:
            container.retry.failed(self._now())
            container.wait(Waiting(error.reason, str(error)))
            self.warn(error.event, error.text)
        except StartError as error:
            self.instances.pop(container.name, None)
            self._not_started(container, str(error))
        except OSError as error:  # a full disk, or too many processes
            container.retry.failed(self._now())
            container.wait(Waiting("CreateContainerError", str(error)))
            self.warn("Failed", f"Error: {error}")
        finally:
            container.starting = False
            self._wake.set()

    def _started(self, container: Container, instance: RunningContainer, unknown_entrypoint: bool) -> None:
        if isinstance(container.state, Terminated):
            container.last = container.state
        container.state = Running(self._now())
        self._stopped.discard(container.name)
        self.note("Started", f"Container started: {container.name}")
        if unknown_entrypoint:
            image = container.spec.get("image", "")
            message = (
                f"The lab pulls no images: without a command, container {container.name} sleeps in place of {image}"
            )
            self.note("NoCommand", message)
        ProbeRunner(self, container, instance, self._services.runtime).begin()
        end = asyncio.create_task(self._await_end(container, instance), name=f"end of {container.name} of {self.uid}")
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)

    def _not_started(self, container: Container, why: str) -> None:
        message = (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            f"failed: unable to start container process: error during container init: {why}: unknown"
        )
        self.warn("Failed", f"Error: {message}")
        end = Terminated(START_ERROR, "StartError", self._now(), message=message, container_id=container.container_id)
        container.terminated(end)
        if pod_plan.restarts(container, self._policy, end):
            container.wait(Waiting("RunContainerError", message))

    async def _await_end(self, container: Container, instance: RunningContainer) -> None:
        outcome = await self._services.runtime.ended(instance)
        self.instances.pop(container.name, None)
        container.terminated(_end_of(outcome, instance, self._now()))
        self._wake.set()

    def _stop(self, name: str) -> None:
        instance = self.instances.get(name)
        if instance is None:
            if task := self._starts.get(name):
                task.cancel()  # it waits for a plugin or the API server; it has no process yet
            return
        instance.shim.stop(self._grace())
        if name not in self._stopped:
            self._stopped.add(name)
            self.note("Killing", f"Stopping container {name}")

    def kill(self, container: Container, message: str) -> None:
        """End one container, whose restart policy then decides. `message` is the event's."""
        self.note("Killing", message)
        if instance := self.instances.get(container.name):
            instance.shim.stop(self.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))

    def changed(self) -> None:
        """The health of a container changed."""
        self._wake.set()

    def _grace(self) -> float:
        """Seconds until a container is killed."""
        spec_s = float(self.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))
        asked = self.pod["metadata"].get("deletionGracePeriodSeconds")
        whole = spec_s if asked is None else float(asked)
        if self._removed:
            whole = min(whole, REMOVED_GRACE_S)
        passed = self._now() - (self._end_began or self._now())
        return max(whole - passed, min(whole, MIN_SIDECAR_GRACE_S))

    def _known(self, name: str) -> Container:
        found = self.container(name)
        assert found is not None, name
        return found


def _end_of(outcome: Exit, instance: RunningContainer, now: float) -> Terminated:
    return Terminated(
        exit_code=outcome.code,
        signal=outcome.signal,
        reason="Completed" if outcome.code == 0 else "Error",
        message="the container's supervisor was killed" if outcome.lost else "",
        started_at=instance.began_at,
        finished_at=now,
        container_id=instance.id,
    )


def pod_ip(uid: str) -> str:
    """A loopback address for the pod: programs bind to it and reach each other, because the machine has them all."""
    digest = zlib.crc32(uid.encode())
    return f"127.{1 + digest % 253}.{digest // 253 % 254}.{1 + digest // 64262 % 253}"
