"""The committed stubs say what the .proto files say, and both say what Kubernetes publishes."""

import tempfile
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from grpc_tools import protoc

from lamina.ports.kubelet import (
    deviceplugin_pb2,
    deviceplugin_pb2_grpc,
    drahealth_pb2,
    draplugin_pb2,
    generate,
    pluginregistration_pb2,
    podresources_pb2,
)
from lamina.ports.kubelet.podresources_pb2_grpc import PodResourcesListerStub

STUBS = {
    "deviceplugin": deviceplugin_pb2,
    "drahealth": drahealth_pb2,
    "draplugin": draplugin_pb2,
    "pluginregistration": pluginregistration_pb2,
    "podresources": podresources_pb2,
}


def plain(file: descriptor_pb2.FileDescriptorProto) -> list[str]:
    """What counts in a file: not the JSON names, which the stubs leave to be derived."""
    return [line for line in str(file).splitlines() if "json_name" not in line]


@pytest.mark.parametrize("protocol", generate.PROTOCOLS)
def test_a_fresh_compile_gives_the_committed_messages_and_services(protocol: str) -> None:
    with tempfile.NamedTemporaryFile() as out:
        source = generate.HERE / f"{protocol}.proto"
        arguments = ["protoc", f"-I{generate.SOURCE_ROOT}", f"--descriptor_set_out={out.name}", str(source)]
        assert protoc.main(arguments) == 0
        compiled = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]
    committed = descriptor_pb2.FileDescriptorProto()
    STUBS[protocol].DESCRIPTOR.CopyToProto(committed)
    assert plain(committed) == plain(compiled)


@pytest.mark.parametrize("protocol", generate.PROTOCOLS)
def test_the_committed_stubs_name_every_call(protocol: str) -> None:
    stub = (generate.HERE / f"{protocol}_pb2_grpc.py").read_text()
    file: FileDescriptor = STUBS[protocol].DESCRIPTOR
    calls = [m.full_name.rpartition(".") for s in file.services_by_name.values() for m in s.methods]
    assert calls
    for service, _, method in calls:
        assert f"'/{service}/{method}'" in stub


def test_the_generator_writes_every_committed_file(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    written = {path.name for path in (tmp_path / "lamina/ports/kubelet").iterdir()}
    assert written == {path.name for path in generate.HERE.glob("*_pb2*")}


def numbers(message: type) -> dict[str, int]:
    return {field.name: field.number for field in message.DESCRIPTOR.fields}  # type: ignore[attr-defined]


def test_published_names_and_numbers() -> None:
    d, p = deviceplugin_pb2, podresources_pb2
    assert numbers(d.RegisterRequest) == {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4}
    assert numbers(d.DevicePluginOptions) == {"pre_start_required": 1, "get_preferred_allocation_available": 2}
    assert numbers(d.Device) == {"ID": 1, "health": 2, "topology": 3}
    assert numbers(d.ContainerAllocateResponse) == {
        "envs": 1, "mounts": 2, "devices": 3, "annotations": 4, "cdi_devices": 5,
    }  # fmt: skip
    assert numbers(d.Mount) == {"container_path": 1, "host_path": 2, "read_only": 3}
    assert numbers(d.DeviceSpec) == {"container_path": 1, "host_path": 2, "permissions": 3}
    assert numbers(d.PreStartContainerRequest) == {"devices_ids": 1}
    assert numbers(d.ContainerAllocateRequest) == {"devices_ids": 1}
    assert numbers(d.ContainerPreferredAllocationRequest) == {
        "available_deviceIDs": 1, "must_include_deviceIDs": 2, "allocation_size": 3,
    }  # fmt: skip
    assert numbers(p.PodResources) == {"name": 1, "namespace": 2, "containers": 3}
    assert numbers(p.ContainerResources) == {
        "name": 1, "devices": 2, "cpu_ids": 3, "memory": 4, "dynamic_resources": 5,
    }  # fmt: skip
    assert numbers(p.DynamicResource) == {"claim_name": 2, "claim_namespace": 3, "claim_resources": 4}
    assert numbers(p.ClaimResource) == {
        "cdi_devices": 1, "driver_name": 2, "pool_name": 3, "device_name": 4, "share_id": 5,
    }  # fmt: skip
    assert numbers(p.ContainerDevices) == {"resource_name": 1, "device_ids": 2, "topology": 3}
    assert numbers(p.GetPodResourcesRequest) == {"pod_name": 1, "pod_namespace": 2}
    assert d.DESCRIPTOR.package == "v1beta1"
    assert p.DESCRIPTOR.package == "v1"
    assert hasattr(deviceplugin_pb2_grpc, "RegistrationServicer")
    assert PodResourcesListerStub is not None


def test_published_names_and_numbers_of_drivers() -> None:
    d, r = draplugin_pb2, pluginregistration_pb2
    assert numbers(d.Claim) == {"namespace": 1, "uid": 2, "name": 3}
    assert numbers(d.NodePrepareResourceResponse) == {"devices": 1, "error": 2}
    assert numbers(d.NodeUnprepareResourceResponse) == {"error": 1}
    assert numbers(d.Device) == {
        "request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4, "share_id": 5,
    }  # fmt: skip
    assert numbers(r.PluginInfo) == {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4}
    assert numbers(r.RegistrationStatus) == {"plugin_registered": 1, "error": 2}
    assert d.DESCRIPTOR.package == "k8s.io.kubelet.pkg.apis.dra.v1"
    assert r.DESCRIPTOR.package == "pluginregistration"


def test_published_names_and_numbers_of_health() -> None:
    h = drahealth_pb2
    assert numbers(h.DeviceIdentifier) == {"pool_name": 1, "device_name": 2}
    assert numbers(h.DeviceHealth) == {
        "device": 1, "health": 2, "last_updated_time": 3, "health_check_timeout_seconds": 4, "message": 5,
    }  # fmt: skip
    assert dict(h.HealthStatus.items()) == {"UNKNOWN": 0, "HEALTHY": 1, "UNHEALTHY": 2}
    assert [each.full_name for each in h.DESCRIPTOR.services_by_name.values()] == ["v1alpha1.DRAResourceHealth"]
