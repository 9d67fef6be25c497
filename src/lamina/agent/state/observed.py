"""What the agent last observed: the Node object, whose its pods are, the configuration of NVIDIA's device plugin, and
which configurations it refuses.

Values that change have watchers: the tasks that wait for their next state.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.gpus import MAX_REASON, MAX_REFUSED, RefusedConfiguration
from lamina.core.sharing import ReplicaSharing
from lamina.core.workloads import UNKNOWN, Workload, workload_of
from lamina.ports.kube import Object
from lamina.ports.set_aside import SetAside

T = TypeVar("T")


class Observable(Generic[T]):
    """The last value that was set. Setting an equal value wakes no waiter."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._version = 0
        self._changed = asyncio.Event()

    def set(self, value: T) -> None:
        if value != self.value:
            self.value = value
            self.notify()

    def notify(self) -> None:
        """Wake all waiters as if the value had changed."""
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, version: int) -> tuple[int, T]:
        """The version and the value, once the version differs from `version`; -1 never equals one."""
        while self._version == version:
            await self._changed.wait()
        return self._version, self.value


class ObservedNode(Struct, frozen=True, kw_only=True):
    """The fields of the Node object that the agent uses."""

    uid: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}


class AppliedConfig(Struct, frozen=True, kw_only=True):
    """The configuration that applies and its name. Without a `config` the node offers shares."""

    name: str = ""
    config: NvidiaConfig | None = None
    source: str = ""
    """Where the `config` was found, such as a ConfigMap."""
    policy: str = ""
    """The MIG strategy of the ClusterPolicy or of `nativeDevices.migStrategy`; it applies without a `config` too."""

    def mig_strategy(self, default: str) -> str:
        """The MIG strategy; `default` if this configuration sets none or "none"."""
        own = self.policy or (self.config.mig_strategy if self.config is not None else "none")
        return default if own == "none" else own

    @property
    def machine_type_file(self) -> str:
        """The file with the product name of the machine; empty for the usual one."""
        return "" if self.config is None else self.config.machine_type_file

    @property
    def label_timestamps(self) -> bool:
        """Whether labels may have the time of the last change."""
        return self.config is None or self.config.label_timestamps

    @property
    def sharing(self) -> ReplicaSharing:
        return ReplicaSharing() if self.config is None else self.config.sharing


NO_CONFIG = AppliedConfig()


class PodOwner(NamedTuple):
    """`labels` has an empty value for a label that the pod does not have."""

    workload: Workload
    labels: Mapping[str, str]


NO_OWNER = PodOwner(UNKNOWN, {})


class PodOwners:
    """The owners of the pods that Kubernetes lists on the node."""

    def __init__(self, labels: Sequence[str] = ()) -> None:
        """`labels` are the labels that have accounts."""
        self._labels = labels
        self._known: dict[str, PodOwner] = {}

    def owner_of(self, pod: Object) -> PodOwner:
        values = pod["metadata"].get("labels") or {}
        return PodOwner(workload_of(pod), {label: str(values.get(label) or "") for label in self._labels})

    def observe(self, uid: str, owner: PodOwner) -> None:
        self._known[uid] = owner

    def observe_end(self, uid: str) -> None:
        """The pod is deleted or finished. The book of accounts still knows its workload while it holds something."""
        self._known.pop(uid, None)

    def get(self, uid: str) -> PodOwner:
        return self._known.get(uid, NO_OWNER)


_Publish = Callable[[tuple[RefusedConfiguration, ...]], object]


class Refusals:
    """Those of the node, for its Inventory: at most one of each kind. They outlive a change of what is in force."""

    def __init__(self, aside: SetAside) -> None:
        self.aside = aside
        """Where each refusal is logged and counted too."""
        self._known: dict[str, RefusedConfiguration] = {}
        self._publish: _Publish = lambda refused: None

    def refuse(self, kind: str, source: str, reason: str, now: float) -> bool:
        """The configuration of this kind is refused at `now`, in seconds since 1970. Returns whether that is new."""
        known = self._known.get(kind)
        refused = RefusedConfiguration(source=source[:MAX_REASON], reason=reason[:MAX_REASON], since=int(now))
        if known is not None and (known.source, known.reason) == (refused.source, refused.reason):
            return False
        self._known[kind] = refused
        self._tell()
        return True

    def accept(self, kind: str) -> None:
        """The configuration of this kind is in force, or there is none."""
        if self._known.pop(kind, None) is not None:
            self._tell()

    def publish_to(self, publish: _Publish) -> None:
        """Give this one what is refused, now and after each change."""
        self._publish = publish
        self._tell()

    def _tell(self) -> None:
        self._publish(tuple(each for _, each in sorted(self._known.items()))[:MAX_REFUSED])
