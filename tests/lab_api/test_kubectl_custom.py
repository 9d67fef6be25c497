"""Custom resources through a real kubectl, and through lightkube as our own parts use it."""

import asyncio
import json
from pathlib import Path

import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from lamina.core.definitions import custom_resource_definitions
from lamina_lab.api.server import serve
from tests.kubectl import Kubectl
from tests.lab_api.servers import FakeKubelets, Threaded

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shares.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shares, kind: Share, shortNames: [shr], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Pod, type: string, jsonPath: .spec.pod}
    - {name: GPUs, type: string, jsonPath: ".spec.shares[*].gpu"}
    - {name: Memory, type: integer, jsonPath: ".spec.memoryMiB", priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
"""

SHARE = """
apiVersion: example.com/v1
kind: Share
metadata: {name: s}
spec: {pod: a, memoryMiB: 1000, shares: [{gpu: GPU-1}, {gpu: GPU-2}]}
"""


def test_explain_shows_the_fields_of_a_definition(lab: Threaded, kubectl: Kubectl) -> None:
    for definition in custom_resource_definitions():
        kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    kubectl("wait", "--for=condition=Established", "crd/inventories.lamina.dev", "--timeout=120s")
    assert "Version of the NVIDIA driver" in kubectl("explain", "inventory.spec.driver")
    assert "capacityMiB" in kubectl("explain", "inv.spec.gpus")
    assert "containers" in kubectl("explain", "grants.spec")
    assert "does not exist" in kubectl.refused("explain", "grants.spec.absent")


def test_a_custom_resource_is_served_as_soon_as_it_is_defined(lab: Threaded, kubectl: Kubectl) -> None:
    assert "the server doesn't have a resource type" in kubectl.refused("get", "shares")
    kubectl("apply", "-f", "-", stdin=CRD)
    kubectl("wait", "--for=condition=Established", "crd/shares.example.com", "--timeout=120s")
    kubectl("apply", "-f", "-", stdin=SHARE)
    assert kubectl("apply", "-f", "-", stdin=SHARE) == "share.example.com/s unchanged\n"
    [head, row] = kubectl("get", "shr").splitlines()
    assert head.split() == ["NAME", "POD", "GPUS", "AGE"]
    assert row.split()[:4] == ["s", "a", "GPU-1", "GPU-2"]
    assert kubectl("get", "shr", "-o", "wide", "--no-headers").split()[4] == "1000"
    assert "share.example.com/s" in kubectl("get", "all", "-o", "name")
    kubectl("patch", "share", "s", "--type=merge", "-p", '{"spec":{"pod":"b"}}')
    kubectl("patch", "share", "s", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Held"}}')
    kubectl("wait", "--for=jsonpath={.status.phase}=Held", "share/s", "--timeout=120s")
    assert "GPU - 1" in kubectl("describe", "share", "s") or "GPU-1" in kubectl("describe", "share", "s")
    refused = kubectl.refused("patch", "share", "s", "-p", '{"spec":{"pod":"c"}}')
    assert "application/strategic-merge-patch+json is not supported" in refused
    meta = lab.get("shares.example.com", "s")["metadata"]
    assert meta["generation"] == 2
    kubectl("delete", "crd", "shares.example.com")
    assert "the server could not find the requested resource" in kubectl.refused("get", "shares")


async def test_lightkube_speaks_with_it(tmp_path: Path) -> None:
    server = await serve(FakeKubelets())
    server.write_kubeconfig(tmp_path / "kubeconfig")
    client = AsyncClient(config=KubeConfig.from_file(tmp_path / "kubeconfig"), field_manager="lamina")
    seen: list[tuple[str, str]] = []

    async def watch() -> None:
        async for kind, found in client.watch(Pod, namespace="default"):
            assert found.metadata is not None
            seen.append((kind, str(found.metadata.name)))
            if kind == "DELETED":
                return

    watching = asyncio.create_task(watch())
    pod = Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=[Container(name="m", image="i")]))
    made = await client.create(pod, namespace="default")
    await client.patch(Pod.Status, "a", {"status": {"phase": "Running"}}, namespace="default")
    labels = {"metadata": {"labels": {"a": "b"}}}
    await client.patch(Pod, "a", labels, namespace="default", patch_type=PatchType.MERGE)
    with pytest.raises(ApiError) as conflict:
        await client.replace(made, namespace="default")
    assert conflict.value.status.code == 409
    for data in ({"a": "b"}, {"c": "d"}):
        settings = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data=data)
        assert (await client.apply(settings)).data == data
    assert [each.metadata.name async for each in client.list(Pod, labels={"a": "b"})] == ["a"]  # type: ignore[union-attr]
    await client.delete(Pod, "a", namespace="default", grace_period=0)
    await asyncio.wait_for(watching, 60)
    assert (seen[0], seen[-1]) == (("ADDED", "a"), ("DELETED", "a"))
    await client.close()
    await server.close()
