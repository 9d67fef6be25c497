"""NVIDIA's device plugin as kubelet and Lamina see it: it registers nvidia.com/gpu once and again with every kubelet,
and hands out GPUs by an environment variable. It runs from Lamina's image, whose gRPC it uses."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from lamina.ports.kubelet import deviceplugin_pb2 as messages
from lamina.ports.kubelet.deviceplugin_pb2_grpc import DevicePluginServicer
from lamina.ports.kubelet.servers import register, serving

FOLDER = Path("/var/lib/kubelet/device-plugins")
ENDPOINT = "nvidia-gpu.sock"
COUNT = 2


class Plugin(DevicePluginServicer):
    async def GetDevicePluginOptions(self, request: Any, context: Any) -> messages.DevicePluginOptions:
        return messages.DevicePluginOptions()

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[messages.ListAndWatchResponse]:
        devices = [messages.Device(ID=f"theirs-GPU-{number}", health="Healthy") for number in range(COUNT)]
        yield messages.ListAndWatchResponse(devices=devices)
        await asyncio.Event().wait()

    async def Allocate(self, request: Any, context: Any) -> messages.AllocateResponse:
        answer = messages.AllocateResponse()
        for container in request.container_requests:
            answer.container_responses.add(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(container.devices_ids)})
        return answer


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving(Plugin(), FOLDER / ENDPOINT):
        options = messages.DevicePluginOptions()
        await register(FOLDER, endpoint=ENDPOINT, resource="nvidia.com/gpu", options=options)
        print("registered", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
