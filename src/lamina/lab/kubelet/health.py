"""A running container's probes, and what their verdicts do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.lab.kubelet.instances import Instance, Runtime
from lamina.lab.kubelet.prober import ask_http, ask_tcp, keep_asking
from lamina.lab.kubelet.probes import Probe
from lamina.lab.kubelet.records import Container
from lamina.lab.kubelet.shims import Program, StartFailed

if TYPE_CHECKING:
    from lamina.lab.kubelet.podworker import PodWorker


class Health:
    """The probes of one instance of a container; they end with it."""

    def __init__(self, worker: PodWorker, container: Container, instance: Instance, runtime: Runtime) -> None:
        self._worker = worker
        self._container = container
        self._instance = instance
        self._runtime = runtime

    def begin(self) -> None:
        if startup := self._container.spec.get("startupProbe"):
            self._instance.watch(keep_asking(Probe.of(startup), self._ask, self._startup))
        else:
            self._begin_rest()

    def _begin_rest(self) -> None:
        self._container.started = True
        if liveness := self._container.spec.get("livenessProbe"):
            self._instance.watch(keep_asking(Probe.of(liveness), self._ask, self._liveness))
        if readiness := self._container.spec.get("readinessProbe"):
            self._instance.watch(keep_asking(Probe.of(readiness), self._ask, self._readiness))
        else:
            self._container.ready = True
        self._worker.changed()

    def _startup(self, verdict: bool | None, problem: str) -> bool:
        self._report("Startup", problem)
        if verdict:
            self._begin_rest()
        elif verdict is False:
            self._kill("startup")
        return verdict is None

    def _liveness(self, verdict: bool | None, problem: str) -> bool:
        self._report("Liveness", problem)
        if verdict is False:
            self._kill("liveness")
        return verdict is not False

    def _readiness(self, verdict: bool | None, problem: str) -> bool:
        self._report("Readiness", problem)
        if verdict is not None and self._container.ready is not verdict:
            self._container.ready = verdict
            self._worker.changed()
        return True

    def _report(self, kind: str, problem: str) -> None:
        if problem:
            self._worker.warn("Unhealthy", f"{kind} probe failed: {problem}")

    def _kill(self, kind: str) -> None:
        message = f"Container {self._container.name} failed {kind} probe, will be restarted"
        self._worker.kill(self._container, message)

    async def _ask(self, probe: Probe) -> str:
        try:
            if "exec" in probe.action:
                return await self._ask_command(probe)
            if "httpGet" in probe.action:
                return await ask_http(probe, self._container.spec, self._worker.ip)
            if "tcpSocket" in probe.action:
                return await ask_tcp(probe, self._container.spec, self._worker.ip)
        except ValueError as error:  # a port by a name that the container does not have
            return str(error)
        return "the lab's kubelet knows the probes exec, httpGet and tcpSocket"

    async def _ask_command(self, probe: Probe) -> str:
        own = self._instance.program
        log = own.cwd.parent / f"probe-{id(probe)}.log"
        words = list(probe.action["exec"]["command"])
        shim = self._runtime.companion(self._instance, Program(argv=words, env=own.env, cwd=own.cwd, log=log))
        try:
            await shim.started()
            outcome = await shim.exited()
            output = log.read_bytes() if log.exists() else b""
        except StartFailed as error:
            return str(error)
        finally:
            shim.stop(0)
            self._instance.companions.discard(shim)
            log.unlink(missing_ok=True)
        if outcome.code == 0:
            return ""
        said = b"\n".join(line.split(b" ", 3)[3] for line in output.splitlines()).decode(errors="replace")
        return said or f"exit status {outcome.code}"
