"""A driver of Dynamic Resource Allocation over real gRPC, whose answers a test sets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from lamina.ports.kubelet import drahealth_pb2 as health_pb
from lamina.ports.kubelet import draplugin_pb2 as pb
from lamina.ports.kubelet import pluginregistration_pb2 as registration
from lamina.ports.kubelet.drahealth_pb2_grpc import (
    DRAResourceHealthServicer,
    add_DRAResourceHealthServicer_to_server,
)
from lamina.ports.kubelet.pluginregistration_pb2_grpc import RegistrationServicer, add_RegistrationServicer_to_server

DRIVER = "gpu.example.com"
CDI_KIND = "k8s.gpu.example.com/claim"


class FakeDriver(RegistrationServicer, DRAResourceHealthServicer):
    """Prepares one device per request of a claim; its CDI device sets the variable `DEVICE_<request>`.

    `prepared` and `unprepared` record claim UIDs; `refuse` is an error to answer with. `reports_health`: it serves the
    health of devices, as `report` has it.
    """

    def __init__(self, kubelet_dir: Path, cdi_dir: Path, *, versions: tuple[str, ...] = ("v1.DRAPlugin",)) -> None:
        self.socket = kubelet_dir / "plugins_registry" / "gpu.sock"
        self.cdi_dir = cdi_dir
        self.versions = versions
        self.kind = "DRAPlugin"
        self.requests = ["gpu"]
        self.prepared: list[str] = []
        self.unprepared: list[str] = []
        self.registered: list[tuple[bool, str]] = []
        self.refuse = ""
        self.reports_health = False
        self._reports: asyncio.Queue[tuple[str, health_pb.HealthStatus, str]] = asyncio.Queue()
        self._server: Any = None

    async def start(self) -> None:
        self._server = grpc.aio.server()
        add_RegistrationServicer_to_server(self, self._server)
        if self.reports_health:
            add_DRAResourceHealthServicer_to_server(self, self._server)
        for version in ("v1", "v1beta1"):
            handlers = {
                "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                    self._prepare,
                    pb.NodePrepareResourcesRequest.FromString,
                    pb.NodePrepareResourcesResponse.SerializeToString,
                ),
                "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                    self._unprepare,
                    pb.NodeUnprepareResourcesRequest.FromString,
                    pb.NodeUnprepareResourcesResponse.SerializeToString,
                ),
            }
            service = f"k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"
            if f"{version}.DRAPlugin" in self.versions:
                self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)
        self.socket.unlink(missing_ok=True)

    async def report(self, device: str, health: health_pb.HealthStatus, message: str = "") -> None:
        await self._reports.put((device, health, message))

    async def NodeWatchResources(
        self, request: health_pb.NodeWatchResourcesRequest, context: Any
    ) -> AsyncIterator[health_pb.NodeWatchResourcesResponse]:
        while True:
            name, health, message = await self._reports.get()
            device = health_pb.DeviceIdentifier(pool_name="node-0", device_name=name)
            reported = health_pb.DeviceHealth(device=device, health=health, message=message)
            yield health_pb.NodeWatchResourcesResponse(devices=[reported])

    async def GetInfo(self, request: registration.InfoRequest, context: Any) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=self.kind, name=DRIVER, endpoint=str(self.socket), supported_versions=self.versions
        )

    async def NotifyRegistrationStatus(
        self, request: registration.RegistrationStatus, context: Any
    ) -> registration.RegistrationStatusResponse:
        self.registered.append((request.plugin_registered, request.error))
        return registration.RegistrationStatusResponse()

    async def _prepare(self, request: pb.NodePrepareResourcesRequest, context: Any) -> pb.NodePrepareResourcesResponse:
        answer = pb.NodePrepareResourcesResponse()
        for claim in request.claims:
            if self.refuse:
                answer.claims[claim.uid].error = self.refuse
                continue
            self.prepared.append(claim.uid)
            self._write_cdi(claim.uid)
            for name in self.requests:
                device = answer.claims[claim.uid].devices.add(pool_name="node-0", device_name=f"{name}-0")
                device.request_names.append(name)
                device.cdi_device_ids.append(f"{CDI_KIND}={claim.uid}-{name}")
                device.share_id = "share-1"
        return answer

    async def _unprepare(
        self, request: pb.NodeUnprepareResourcesRequest, context: Any
    ) -> pb.NodeUnprepareResourcesResponse:
        answer = pb.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            if self.refuse:
                answer.claims[claim.uid].error = self.refuse
            else:
                self.unprepared.append(claim.uid)
                answer.claims[claim.uid].SetInParent()
        return answer

    def _write_cdi(self, uid: str) -> None:
        devices = [
            {"name": f"{uid}-{name}", "containerEdits": {"env": [f"DEVICE_{name}={name}-of-{uid}"]}}
            for name in self.requests
        ]
        document = {"cdiVersion": "0.6.0", "kind": CDI_KIND, "devices": devices}
        (self.cdi_dir / f"{uid}.json").write_text(json.dumps(document))
