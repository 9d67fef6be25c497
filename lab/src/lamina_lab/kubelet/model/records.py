"""What the kubelet knows about a pod's containers: the data for planning and status."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from lamina_lab.kubelet.model.backoff import CrashBackoff, RetryBackoff

CRASH_LOOP = "CrashLoopBackOff"


class Kind(StrEnum):
    """The role of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"  # an init container with restartPolicy Always
    APP = "app"
    EPHEMERAL = "ephemeral"  # added to a pod that exists, by `kubectl debug`


class Waiting(Struct, frozen=True):
    reason: str
    message: str = ""


class Running(Struct, frozen=True):
    started_at: float


class Terminated(Struct, frozen=True):
    exit_code: int
    reason: str
    finished_at: float
    started_at: float = 0.0
    message: str = ""
    signal: int = 0
    container_id: str = ""


State = Waiting | Running | Terminated


class Container(Struct):
    """One container of a pod. `restarts` is also the number of the current or last instance."""

    name: str
    kind: Kind
    spec: Mapping[str, Any]
    state: State = field(default_factory=lambda: Waiting("ContainerCreating"))
    last: Terminated | None = None
    restarts: int = 0
    container_id: str = ""
    starting: bool = False  # between the decision to start it and the outcome
    started: bool = False  # its startup probe, if it has one, has succeeded
    ready: bool = False
    crash: CrashBackoff = field(default_factory=CrashBackoff)
    retry: RetryBackoff = field(default_factory=RetryBackoff)

    @property
    def latest_end(self) -> Terminated | None:
        """How the latest instance ended; None if none has ended or one is running."""
        if isinstance(self.state, Terminated):
            return self.state
        return None if isinstance(self.state, Running) else self.last

    @property
    def running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def completed(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.exit_code == 0

    def terminated(self, end: Terminated) -> None:
        self.state = end
        self.started = self.ready = False

    def wait(self, waiting: Waiting) -> None:
        """Show `waiting`. An end that was shown until now becomes the last state."""
        if isinstance(self.state, Terminated):
            self.last = self.state
        self.state = waiting


def containers_of(pod_spec: Mapping[str, Any]) -> list[Container]:
    """New records in the order of the spec: init containers, apps, then ephemeral containers."""
    inits = [Container(spec["name"], _init_kind(spec), spec) for spec in pod_spec.get("initContainers") or ()]
    apps = [Container(spec["name"], Kind.APP, spec) for spec in pod_spec.get("containers") or ()]
    if inits:
        for container in inits + apps:
            container.state = Waiting("PodInitializing")
    added = [Container(spec["name"], Kind.EPHEMERAL, spec) for spec in pod_spec.get("ephemeralContainers") or ()]
    return inits + apps + added


def of_kind(containers: Iterable[Container], *kinds: Kind) -> list[Container]:
    return [container for container in containers if container.kind in kinds]


def _init_kind(spec: Mapping[str, Any]) -> Kind:
    return Kind.SIDECAR if spec.get("restartPolicy") == "Always" else Kind.INIT
