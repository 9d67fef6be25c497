"""What the kubelet knows of a pod's containers: plain data that planning decides on and status is written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lamina.lab.kubelet.backoff import CrashBackoff, RetryBackoff

CRASH_LOOP = "CrashLoopBackOff"


class Kind(StrEnum):
    """The part that a container plays in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"  # an init container with restartPolicy Always
    APP = "app"


@dataclass(frozen=True, slots=True)
class Waiting:
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    started_at: float


@dataclass(frozen=True, slots=True)
class Terminated:
    exit_code: int
    reason: str
    finished_at: float
    started_at: float = 0.0
    message: str = ""
    signal: int = 0
    container_id: str = ""


State = Waiting | Running | Terminated


@dataclass(slots=True)
class Container:
    """One container of a pod. `restarts` is also the number of the instance that runs or ran last."""

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
        """How the latest instance ended, None if none has ended or one runs."""
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
        """Show `waiting`; an end that was shown until now becomes the last state."""
        if isinstance(self.state, Terminated):
            self.last = self.state
        self.state = waiting


def containers_of(pod_spec: Mapping[str, Any]) -> list[Container]:
    """Fresh records, init containers first, in the order of the spec."""
    inits = [Container(spec["name"], _init_kind(spec), spec) for spec in pod_spec.get("initContainers") or ()]
    apps = [Container(spec["name"], Kind.APP, spec) for spec in pod_spec.get("containers") or ()]
    if inits:
        for container in inits + apps:
            container.state = Waiting("PodInitializing")
    return inits + apps


def of_kind(containers: Iterable[Container], *kinds: Kind) -> list[Container]:
    return [container for container in containers if container.kind in kinds]


def _init_kind(spec: Mapping[str, Any]) -> Kind:
    return Kind.SIDECAR if spec.get("restartPolicy") == "Always" else Kind.INIT
