"""Serving a driver for Dynamic Resource Allocation, its devices' health and its registration on one socket.

Kubelet's versions v1 and v1beta1 of the protocol have the same messages on the wire, so one driver serves both.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from lamina.ports.kubelet import draplugin_pb2 as messages
from lamina.ports.kubelet.drahealth_pb2_grpc import DRAResourceHealthServicer, add_DRAResourceHealthServicer_to_server
from lamina.ports.kubelet.draplugin_pb2_grpc import DRAPluginServicer
from lamina.ports.kubelet.plugin_server import serving_at
from lamina.ports.kubelet.pluginregistration_pb2_grpc import RegistrationServicer, add_RegistrationServicer_to_server

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
            request_deserializer=messages.NodePrepareResourcesRequest.FromString,
            response_serializer=messages.NodePrepareResourcesResponse.SerializeToString,
        ),
        "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
            driver.NodeUnprepareResources,
            request_deserializer=messages.NodeUnprepareResourcesRequest.FromString,
            response_serializer=messages.NodeUnprepareResourcesResponse.SerializeToString,
        ),
    }
    for version in VERSIONS:
        service = f"k8s.io.kubelet.pkg.apis.dra.{version}.{TYPE}"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    async with serving_at(server, socket, "plugins"):
        yield
