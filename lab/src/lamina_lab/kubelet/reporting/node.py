"""The Node object: registered at startup, its capacity kept up to date, its lease renewed."""

import asyncio
import contextlib
import platform
from collections.abc import Awaitable, Callable, Mapping

from lamina import __version__
from lamina.errors import Outside
from lamina.ports.kube import LEASES, NODES, AlreadyExists, Kube, NotFound, Object
from lamina.ports.kube.moments import rfc3339, rfc3339_micro
from lamina_lab.kubelet.model.settings import Settings

KUBELET_VERSION = f"v1.36.2-lamina.{__version__}"
LEASE_S = 40
RENEW_S = 2.0
"""A real kubelet renews every 10 s; the lab's controllers mark a silent node after that time."""
REPORT_S = 5.0
"""How often the node's status is checked if nothing has changed here."""
RETRY_S = 0.5
MAX_PODS = 110

_LEASE_NAMESPACE = "kube-node-lease"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def labels(settings: Settings) -> dict[str, str]:
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    standard = {"hostname": settings.node, "arch": architecture, "os": "linux"}
    return {f"kubernetes.io/{name}": value for name, value in standard.items()} | dict(settings.labels)


def amounts(settings: Settings, devices: Mapping[str, tuple[int, int]]) -> tuple[Object, Object]:
    """Capacity and allocatable."""
    own = {"cpu": str(settings.cpus), "memory": f"{settings.memory_mib * 1024}Ki", "pods": str(MAX_PODS)}
    capacity = {name: str(total) for name, (total, _) in devices.items()}
    allocatable = {name: str(healthy) for name, (_, healthy) in devices.items()}
    return own | capacity, own | allocatable


def node_status(settings: Settings, devices: Mapping[str, tuple[int, int]], since: float, now: float) -> Object:
    """`since` is when this kubelet became ready."""
    capacity, allocatable = amounts(settings, devices)
    times = {"lastHeartbeatTime": rfc3339(now), "lastTransitionTime": rfc3339(since)}
    conditions = [
        {"type": kind, "status": "False", "reason": reason, "message": message, **times}
        for kind, reason, message in _PRESSURES
    ]
    ready = {"reason": "KubeletReady", "message": "kubelet is posting ready status", **times}
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": [*conditions, {"type": "Ready", "status": "True", **ready}],
        "addresses": [
            {"type": "InternalIP", "address": settings.node_ip},
            {"type": "Hostname", "address": settings.node},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(settings),
    }


def _node_info(settings: Settings) -> Object:
    return {
        "machineID": settings.node,
        "systemUUID": settings.node,
        "bootID": settings.lab_id,
        "kernelVersion": platform.release(),
        "osImage": "Lamina lab",
        "containerRuntimeVersion": f"lamina://{__version__}",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }


class NodeReporter:
    """Keeps the Node object and its lease up to date. `refresh` says that device counts changed."""

    def __init__(
        self,
        kube: Kube,
        settings: Settings,
        devices: Callable[[float], Mapping[str, tuple[int, int]]],
        now: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._devices = devices
        self._now = now
        self._since = now()
        self._changed = asyncio.Event()

    def refresh(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Never returns."""
        await _retry(self.register)
        await asyncio.gather(self._keep_reporting(), self._keep_renewing())

    async def mark_not_ready(self) -> None:
        """The kubelet stops: the node is not ready any more. Raises Outside."""
        now = self._now()
        status = node_status(self._settings, self._devices(now), self._since, now)
        status["conditions"][-1] |= {
            "status": "False",
            "reason": "KubeletNotReady",
            "message": "the lab's kubelet was stopped",
            "lastTransitionTime": rfc3339(now),
        }
        await self._patch({"status": status}, "status")

    async def register(self) -> None:
        """Create the Node or take over the existing one, with its status. Raises Outside."""
        metadata = {"name": self._settings.node, "labels": labels(self._settings)}
        try:
            await self._kube.create(NODES, {"metadata": metadata, "spec": {}})
        except AlreadyExists:
            await self._patch({"metadata": {"labels": labels(self._settings)}})
        await self.send()

    async def send(self) -> None:
        """Write the whole current status. Raises Outside."""
        self._changed.clear()
        now = self._now()
        await self._patch({"status": node_status(self._settings, self._devices(now), self._since, now)}, "status")

    async def _patch(self, body: Object, subresource: str = "") -> None:
        await self._kube.patch(NODES, self._settings.node, body, subresource=subresource)

    async def _keep_reporting(self) -> None:
        while True:
            try:
                async with asyncio.timeout(REPORT_S):
                    await self._changed.wait()
                await _retry(self.send)
            except TimeoutError:
                with contextlib.suppress(Outside):
                    await self.correct_foreign_changes()

    async def correct_foreign_changes(self) -> None:
        """Correct what others wrote, as a controller does after the kubelet was silent. Raises Outside."""
        now = self._now()
        status = (await self._kube.get(NODES, self._settings.node)).get("status") or {}
        wanted = node_status(self._settings, self._devices(now), self._since, now)
        if _reported(status, wanted) != _reported(wanted, wanted):
            await self.send()

    async def _keep_renewing(self) -> None:
        while True:
            await _retry(self.renew)
            await asyncio.sleep(RENEW_S)

    async def renew(self) -> None:
        """Renew the lease. Raises Outside."""
        name = self._settings.node
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "renewTime": rfc3339_micro(self._now())}
        try:
            await self._kube.patch(LEASES, name, {"spec": spec}, namespace=_LEASE_NAMESPACE)
        except NotFound:
            lease = {"metadata": {"name": name, "namespace": _LEASE_NAMESPACE}, "spec": spec}
            await self._kube.create(LEASES, lease)


def _reported(status: Object, own: Object) -> tuple[dict[str, str], Object, Object]:
    """What a node's status says, without times and without amounts that others added."""
    words = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    capacity, allocatable = (
        {name: amount for name, amount in (status.get(field) or {}).items() if name in own[field]}
        for field in ("capacity", "allocatable")
    )
    return words, capacity, allocatable


async def _retry(step: Callable[[], Awaitable[None]]) -> None:
    """Repeat `step` until the API server accepts it."""
    while True:
        try:
            await step()
            return
        except Outside:
            await asyncio.sleep(RETRY_S)
