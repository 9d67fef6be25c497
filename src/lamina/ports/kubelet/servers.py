"""Serving kubelet: device plugins and a driver for Dynamic Resource Allocation on sockets, and their registration.

A socket's path has at most 107 bytes; gRPC would only say that binding failed. A socket left by an earlier process is
removed first, because a bind to it fails for ever. Kubelet's versions v1 and v1beta1 of the protocol for drivers have
the same messages on the wire, so one driver serves both.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from lamina.errors import BadInput, Outside
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet import draplugin_pb2 as driver_messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import (
    DevicePluginServicer,
    RegistrationStub,
    add_DevicePluginServicer_to_server,
)
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthServicer, add_DRAResourceHealthServicer_to_server
from lamina.ports.kubelet.draplugin_pb2_grpc import DRAPluginServicer
from lamina.ports.kubelet.pluginregistration_pb2_grpc import RegistrationServicer, add_RegistrationServicer_to_server

VERSION = "v1beta1"
KUBELET_SOCKET = "kubelet.sock"
PLUGIN_FOLDER = "device-plugins"
POD_RESOURCES_SOCKET = Path("pod-resources") / "kubelet.sock"

_TIMEOUT_S = 10.0


async def register(plugin_folder: Path, *, endpoint: str, resource: str, options: messages.DevicePluginOptions) -> None:
    """Register the plugin whose socket is `plugin_folder/endpoint`. Raises Outside when kubelet refuses or is away."""
    request = messages.RegisterRequest(version=VERSION, endpoint=endpoint, resource_name=resource, options=options)
    try:
        async with grpc.aio.insecure_channel(f"unix:{plugin_folder / KUBELET_SOCKET}") as channel:
            await RegistrationStub(channel).Register(request, timeout=_TIMEOUT_S)
    except grpc.RpcError as error:
        raise Outside(f"kubelet does not take the registration of {resource}: {error.details()}") from error


_MAX_SOCKET_PATH = 107


@asynccontextmanager
async def serving(plugin: DevicePluginServicer, socket: Path) -> AsyncIterator[None]:
    """Serve `plugin` on `socket` for as long as the block runs. Raises BadInput for a long path, Outside if refused."""
    server = grpc.aio.server()
    add_DevicePluginServicer_to_server(plugin, server)
    async with serving_at(server, socket, "device plugins"):
        yield


@asynccontextmanager
async def serving_at(server: grpc.aio.Server, socket: Path, what: str) -> AsyncIterator[None]:
    """Run a server with its services on `socket`, in kubelet's folder of `what`, for as long as the block runs.

    Raises BadInput for a long path, Outside if refused.
    """
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH:
        raise BadInput(f"the socket path {socket} must have at most {_MAX_SOCKET_PATH} bytes")
    if not socket.parent.is_dir():
        raise Outside(f"kubelet's folder of {what}, {socket.parent}, is not there")
    try:
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
    except (OSError, RuntimeError) as error:
        raise Outside(f"the plugin cannot listen on {socket}: {error}") from error
    try:
        yield
    finally:
        await server.stop(grace=0.5)
        socket.unlink(missing_ok=True)


REGISTRY_FOLDER = "plugins_registry"
TYPE = "DRAPlugin"
VERSIONS = ("v1", "v1beta1")
HEALTH = "v1alpha1.DRAResourceHealth"


@asynccontextmanager
async def serving_driver(
    driver: DRAPluginServicer, health: DRAResourceHealthServicer, registration: RegistrationServicer, socket: Path
) -> AsyncIterator[None]:
    """Serve all on `socket` for as long as the block runs. Raises BadInput for a long path, Outside if refused."""
    server = grpc.aio.server()
    add_RegistrationServicer_to_server(registration, server)
    add_DRAResourceHealthServicer_to_server(health, server)
    handlers = {
        "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
            driver.NodePrepareResources,
            request_deserializer=driver_messages.NodePrepareResourcesRequest.FromString,
            response_serializer=driver_messages.NodePrepareResourcesResponse.SerializeToString,
        ),
        "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
            driver.NodeUnprepareResources,
            request_deserializer=driver_messages.NodeUnprepareResourcesRequest.FromString,
            response_serializer=driver_messages.NodeUnprepareResourcesResponse.SerializeToString,
        ),
    }
    for version in VERSIONS:
        service = f"k8s.io.kubelet.pkg.apis.dra.{version}.{TYPE}"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    async with serving_at(server, socket, "plugins"):
        yield
