"""The PodResources service: which container on this node holds which devices.

As in a real kubelet: a pod is listed from the end of its admission, so during PreStartContainer but not during
Allocate; sidecars are listed, ordinary init containers are not; each device of each NUMA node has its own entry.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc

from lamina.ports.kubelet import podresources_pb2 as pb
from lamina.ports.kubelet import podresources_pb2_grpc as rpc
from lamina_lab.kubelet.claims.records import NodeClaim, PreparedDevice
from lamina_lab.kubelet.device_manager.allocation import DeviceLedger
from lamina_lab.kubelet.model.records import Kind, containers_of, of_kind

Pod = Mapping[str, Any]


class PodResourcesService(rpc.PodResourcesListerServicer):
    """`pods` returns the pods that are admitted and have not ended, `claims` what one container has of claims."""

    def __init__(
        self,
        ledger: DeviceLedger,
        claims: Callable[[Pod, Mapping[str, Any]], Iterable[tuple[NodeClaim, PreparedDevice]]],
        pods: Callable[[], Iterable[Pod]],
        cpus: int,
    ) -> None:
        self._ledger = ledger
        self._claims = claims
        self._pods = pods
        self._cpus = cpus

    async def List(self, request: pb.ListPodResourcesRequest, context: Any) -> pb.ListPodResourcesResponse:
        return pb.ListPodResourcesResponse(pod_resources=[self._of(pod) for pod in self._pods()])

    async def Get(self, request: pb.GetPodResourcesRequest, context: Any) -> pb.GetPodResourcesResponse:
        for pod in self._pods():
            metadata = pod["metadata"]
            if (metadata["name"], metadata["namespace"]) == (request.pod_name, request.pod_namespace):
                return pb.GetPodResourcesResponse(pod_resources=self._of(pod))
        await context.abort(
            grpc.StatusCode.UNKNOWN, f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        )
        raise AssertionError("abort always raises")

    async def GetAllocatableResources(
        self, request: pb.AllocatableResourcesRequest, context: Any
    ) -> pb.AllocatableResourcesResponse:
        devices = [
            entry
            for name, resource in self._ledger.resources.items()
            for id in resource.healthy()
            for entry in _entries(name, id, resource.devices[id].numa)
        ]
        return pb.AllocatableResourcesResponse(devices=devices, cpu_ids=range(self._cpus))

    def _of(self, pod: Pod) -> pb.PodResources:
        metadata = pod["metadata"]
        listed = of_kind(containers_of(pod["spec"]), Kind.APP, Kind.SIDECAR)
        containers = [
            pb.ContainerResources(
                name=container.name,
                devices=self._devices(metadata["uid"], container.name),
                dynamic_resources=[_dynamic(*held) for held in self._claims(pod, container.spec)],
            )
            for container in listed
        ]
        return pb.PodResources(name=metadata["name"], namespace=metadata["namespace"], containers=containers)

    def _devices(self, uid: str, container: str) -> Iterator[pb.ContainerDevices]:
        for resource, allocation in self._ledger.held_by(uid, container).items():
            for id in allocation.ids:
                yield from _entries(resource, id, allocation.numa.get(id, ()))


def _dynamic(claim: NodeClaim, device: PreparedDevice) -> pb.DynamicResource:
    resource = pb.ClaimResource(
        cdi_devices=[pb.CDIDevice(name=name) for name in device.cdi],
        driver_name=device.driver,
        pool_name=device.pool,
        device_name=device.device,
        share_id=device.share,
    )
    return pb.DynamicResource(claim_name=claim.name, claim_namespace=claim.namespace, claim_resources=[resource])


def _entries(resource: str, id: str, numa: tuple[int, ...]) -> Iterator[pb.ContainerDevices]:
    if not numa:
        yield pb.ContainerDevices(resource_name=resource, device_ids=[id])
    for node in numa:
        topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=node)])
        yield pb.ContainerDevices(resource_name=resource, device_ids=[id], topology=topology)


async def serve(service: PodResourcesService, folder: Path) -> Any:
    """A running gRPC server on kubelet.sock in `folder`; stop it with `stop(None)`."""
    folder.mkdir(parents=True, exist_ok=True)
    socket = folder / "kubelet.sock"
    socket.unlink(missing_ok=True)
    server = grpc.aio.server()
    rpc.add_PodResourcesListerServicer_to_server(service, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server
