"""A driver of Dynamic Resource Allocation as kubelet sees it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from lamina.ports.kubelet import drahealth_pb2
from lamina.ports.kubelet import draplugin_pb2 as pb
from lamina.ports.kubelet import pluginregistration_pb2 as registration
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthStub
from lamina.ports.kubelet.pluginregistration_pb2_grpc import RegistrationStub
from lamina_lab.kubelet.claims.records import NodeClaim, PreparedDevice

TYPE = "DRAPlugin"
VERSIONS = ("v1", "v1beta1")
"""Versions of the protocol, the preferred one first. Their messages are the same on the wire."""
CALL_S = 45.0
_HEALTH = {
    drahealth_pb2.UNKNOWN: "Unknown",
    drahealth_pb2.HEALTHY: "Healthy",
    drahealth_pb2.UNHEALTHY: "Unhealthy",
}


class ClaimError(Exception):
    """Claims cannot be prepared or unprepared; the message is kubelet's or the driver's."""


def open_channel(socket: Path) -> Any:
    """A channel of its own: after a restart on the same path, a shared connection would still back off."""
    settings = [("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]
    return grpc.aio.insecure_channel(f"unix:{socket}", options=settings)


class DeviceHealth(NamedTuple):
    """In the words of a pod's status. `message` is empty where the driver reports none."""

    health: str
    message: str = ""


UNKNOWN = DeviceHealth("Unknown")


class Driver:
    """A registered driver. Calls raise ClaimError. `health` is what it reported of its devices, by pool and device."""

    def __init__(self, name: str, endpoint: Path, version: str) -> None:
        self.name = name
        self.health: dict[tuple[str, str], DeviceHealth] = {}
        self._channel = open_channel(endpoint)
        service = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"
        self._prepare = self._channel.unary_unary(
            f"{service}/NodePrepareResources",
            request_serializer=pb.NodePrepareResourcesRequest.SerializeToString,
            response_deserializer=pb.NodePrepareResourcesResponse.FromString,
        )
        self._unprepare = self._channel.unary_unary(
            f"{service}/NodeUnprepareResources",
            request_serializer=pb.NodeUnprepareResourcesRequest.SerializeToString,
            response_deserializer=pb.NodeUnprepareResourcesResponse.FromString,
        )

    async def prepare(self, claim: NodeClaim) -> list[PreparedDevice]:
        request = pb.NodePrepareResourcesRequest(claims=[_message(claim)])
        answer = await self._ask(self._prepare, request, claim)
        return [self._device(device) for device in answer.devices]

    async def unprepare(self, claim: NodeClaim) -> None:
        await self._ask(self._unprepare, pb.NodeUnprepareResourcesRequest(claims=[_message(claim)]), claim)

    async def follow_health(self, changed: Callable[[], None]) -> None:
        """Follow what the driver reports of its devices, until it ends; a driver need not report anything."""
        stub: Any = DRAResourceHealthStub(self._channel)
        try:
            async for report in stub.NodeWatchResources(drahealth_pb2.NodeWatchResourcesRequest()):
                found = {
                    (each.device.pool_name, each.device.device_name): DeviceHealth(_HEALTH[each.health], each.message)
                    for each in report.devices
                }
                if found != self.health:
                    self.health = found
                    changed()
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.UNIMPLEMENTED:
                print(f"DRA driver {self.name} reports no health any more: {error.details()}", flush=True)
        self.health = {}
        changed()

    async def close(self) -> None:
        await self._channel.close()

    async def _ask(self, method: Any, request: Any, claim: NodeClaim) -> Any:
        try:
            answer = await method(request, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            raise ClaimError(f"DRA driver {self.name}: {error.details()}") from error
        if claim.uid not in answer.claims:
            raise ClaimError(f"DRA driver {self.name} gave no answer for claim {claim.namespace}/{claim.name}")
        found = answer.claims[claim.uid]
        if found.error:
            raise ClaimError(f"DRA driver {self.name}: claim {claim.namespace}/{claim.name}: {found.error}")
        return found

    def _device(self, device: pb.Device) -> PreparedDevice:
        return PreparedDevice(
            self.name,
            device.pool_name,
            device.device_name,
            tuple(device.request_names),
            tuple(device.cdi_device_ids),
            device.share_id or None,
        )


async def introduced(socket: Path) -> Driver:
    """Register the driver on `socket` and notify it of the outcome. Raises ClaimError if it is refused."""
    async with open_channel(socket) as channel:
        stub: Any = RegistrationStub(channel)
        try:
            info = await stub.GetInfo(registration.InfoRequest(), timeout=CALL_S)
            refusal = _refusal(info.type, info.name, info.supported_versions)
            status = registration.RegistrationStatus(plugin_registered=not refusal, error=refusal)
            await stub.NotifyRegistrationStatus(status, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            raise ClaimError(f"the plugin on {socket} cannot be registered: {error.details()}") from error
    if refusal:
        raise ClaimError(f"the plugin on {socket} cannot be registered: {refusal}")
    version = next(version for version in VERSIONS if f"{version}.{TYPE}" in info.supported_versions)
    return Driver(info.name, Path(info.endpoint or socket), version)


def _refusal(kind: str, name: str, versions: Iterable[str]) -> str:
    if kind != TYPE:
        return f"this kubelet knows plugins of type {TYPE}, not {kind}"
    if not name:
        return "a driver needs a name"
    if not any(f"{version}.{TYPE}" in versions for version in VERSIONS):
        supported = " and ".join(f"{version}.{TYPE}" for version in VERSIONS)
        return f"none of its versions is supported; this kubelet supports {supported}"
    return ""


def _message(claim: NodeClaim) -> pb.Claim:
    return pb.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name)
