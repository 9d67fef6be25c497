"""Runs a container's probes, and acts on their results."""

from typing import Protocol

from lamina_lab.kubelet.containers.instances import RunningContainer, Runtime
from lamina_lab.kubelet.containers.shim_client import Program, StartError
from lamina_lab.kubelet.model.records import Container
from lamina_lab.kubelet.pods.prober import ask_http, ask_tcp, probe_repeatedly
from lamina_lab.kubelet.pods.probes import Probe


class ProbedPod(Protocol):
    """The pod of a probed container: where it listens, and what a probe's result does to it."""

    @property
    def ip(self) -> str: ...

    def changed(self) -> None: ...

    def warn(self, reason: str, message: str) -> None: ...

    def kill(self, container: Container, message: str) -> None: ...


class ProbeRunner:
    """The probes of one instance of a container. They end with it."""

    def __init__(self, pod: ProbedPod, container: Container, instance: RunningContainer, runtime: Runtime) -> None:
        self._pod = pod
        self._container = container
        self._instance = instance
        self._runtime = runtime

    def begin(self) -> None:
        if startup := self._container.spec.get("startupProbe"):
            self._instance.watch(probe_repeatedly(Probe.of(startup), self._ask, self._startup))
        else:
            self._begin_rest()

    def _begin_rest(self) -> None:
        self._container.started = True
        if liveness := self._container.spec.get("livenessProbe"):
            self._instance.watch(probe_repeatedly(Probe.of(liveness), self._ask, self._liveness))
        if readiness := self._container.spec.get("readinessProbe"):
            self._instance.watch(probe_repeatedly(Probe.of(readiness), self._ask, self._readiness))
        else:
            self._container.ready = True
        self._pod.changed()

    def _startup(self, result: bool | None, problem: str) -> bool:
        self._report("Startup", problem)
        if result:
            self._begin_rest()
        elif result is False:
            self._kill("startup")
        return result is None

    def _liveness(self, result: bool | None, problem: str) -> bool:
        self._report("Liveness", problem)
        if result is False:
            self._kill("liveness")
        return result is not False

    def _readiness(self, result: bool | None, problem: str) -> bool:
        self._report("Readiness", problem)
        if result is not None and self._container.ready is not result:
            self._container.ready = result
            self._pod.changed()
        return True

    def _report(self, kind: str, problem: str) -> None:
        if problem:
            self._pod.warn("Unhealthy", f"{kind} probe failed: {problem}")

    def _kill(self, kind: str) -> None:
        message = f"Container {self._container.name} failed {kind} probe, will be restarted"
        self._pod.kill(self._container, message)

    async def _ask(self, probe: Probe) -> str:
        try:
            if "exec" in probe.action:
                return await self._ask_command(probe)
            if "httpGet" in probe.action:
                return await ask_http(probe, self._container.spec, self._pod.ip)
            if "tcpSocket" in probe.action:
                return await ask_tcp(probe, self._container.spec, self._pod.ip)
        except ValueError as error:  # a port name that the container does not have
            return str(error)
        return "the lab's kubelet supports exec, httpGet and tcpSocket probes only"

    async def _ask_command(self, probe: Probe) -> str:
        own = self._instance.program
        log = own.cwd.parent / f"probe-{id(probe)}.log"
        words = list(probe.action["exec"]["command"])
        shim = self._runtime.companion(self._instance, Program(argv=words, env=own.env, cwd=own.cwd, log=log))
        try:
            await shim.started()
            outcome = await shim.exited()
            output = log.read_bytes() if log.exists() else b""
        except StartError as error:
            return str(error)
        finally:
            shim.stop(0)
            self._instance.companions.discard(shim)
            log.unlink(missing_ok=True)
        if outcome.code == 0:
            return ""
        said = b"\n".join(line.split(b" ", 3)[3] for line in output.splitlines()).decode(errors="replace")
        return said or f"exit status {outcome.code}"
