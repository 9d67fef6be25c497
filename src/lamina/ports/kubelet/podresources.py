"""Asking kubelet which container holds which devices.

Kubelet may list one resource of a container in several entries (one per NUMA node); they are united here, because a
holder is known by its whole set of devices or not at all.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc

from lamina.errors import Outside
from lamina.ports.kubelet import podresources_pb2 as messages
from lamina.ports.kubelet.podresources_pb2_grpc import PodResourcesListerStub

_TIMEOUT_S = 10.0
_LARGEST = 64 * 1024 * 1024
"""Bytes of an answer; a full node with many resources passes gRPC's 4 MiB."""


class Holder(NamedTuple):
    """A container and the devices of some resources that it holds. Ordinary init containers never appear."""

    namespace: str
    pod: str
    container: str
    devices: frozenset[str]


class PodResources(Protocol):
    """Kubelet's knowledge of who holds what."""

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        """Every container that holds devices of these resources. Raises Outside when kubelet does not answer."""
        ...


class KubeletPodResources:
    """The PodResources of a real kubelet. A connection is made for each question: kubelet's socket comes and goes."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def holders(self, resources: Collection[str]) -> tuple[Holder, ...]:
        try:
            async with grpc.aio.insecure_channel(
                f"unix:{self._socket}", options=[("grpc.max_receive_message_length", _LARGEST)]
            ) as channel:
                answer = await PodResourcesListerStub(channel).List(
                    messages.ListPodResourcesRequest(), timeout=_TIMEOUT_S
                )
        except grpc.RpcError as error:
            raise Outside(f"kubelet does not list its containers on {self._socket}: {error.details()}") from error
        return holders_in(answer, resources)


def holders_in(answer: messages.ListPodResourcesResponse, resources: Collection[str]) -> tuple[Holder, ...]:
    """The holders of these resources in an answer to List."""
    found = []
    for pod in answer.pod_resources:
        for container in pod.containers:
            devices = frozenset(
                device for entry in container.devices if entry.resource_name in resources for device in entry.device_ids
            )
            if devices:
                found.append(Holder(pod.namespace, pod.name, container.name, devices))
    return tuple(found)
