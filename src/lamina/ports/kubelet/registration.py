"""Telling kubelet that a device plugin listens."""

from pathlib import Path

import grpc

from lamina.errors import Outside
from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import RegistrationStub

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
