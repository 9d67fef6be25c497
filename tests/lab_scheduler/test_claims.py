"""Pods with resource claims: where they go, what is written for them, and what happens when that fails."""

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.ports.kube import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
)
from lamina_lab.controllers.run import run as run_controllers
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.claims.of_pod import classes_by_resource, extended_claim
from lamina_lab.scheduler.extender import ManagedResource
from tests.lab_scheduler.cluster import SchedulerCluster
from tests.lab_scheduler.device_objects import CLASSES, capacity, device_class, gpu, request, slices
from tests.worlds.clocks import settle

GPU = {"requests": [request()]}
SHARE = {"requests": [request(capacity=capacity(memory="40Gi"))]}


class ClaimCluster(SchedulerCluster):
    async def begin(self, *found: Object, **config: Any) -> None:
        """Node n1 with these slices, all classes, the controllers and the scheduler, with this about its extender."""
        await self.add_node("n1")
        for entry in found:
            made = copy.deepcopy(entry)
            if "nodeName" in made["spec"]:
                made["spec"]["nodeName"] = made["spec"]["pool"]["name"]
            await self.create(RESOURCE_SLICES, made)
        for entry in CLASSES:
            await self.create(DEVICE_CLASSES, entry)
        self.run(run_controllers(self.kube, self.clock, node_grace=1e9))
        self.start(**config)
        await settle()

    async def template(self, name: str, devices: Object) -> None:
        await self.create(
            RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": {"devices": devices}}}
        )

    async def claim(self, name: str, devices: Object) -> None:
        await self.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": devices}})

    async def pod(self, name: str, *, limits: Object | None = None, **source: Any) -> None:
        container = {"name": "main", "image": "i", "resources": {"limits": limits or {}}}
        spec: Object = {"containers": [container]}
        if source:
            spec["resourceClaims"] = [{"name": "gpu", **source}]
        await self.create(PODS, {"metadata": {"name": name}, "spec": spec})
        await settle()

    async def end(self, name: str) -> None:
        await self.change(PODS, name, {"status": {"phase": "Succeeded"}}, "status")
        await settle()

    def devices(self) -> dict[str, list[str]]:
        """Devices of each allocated claim."""
        found = {}
        for claim in self.all(RESOURCE_CLAIMS):
            if allocation := objects.status(claim).get("allocation"):
                found[objects.name(claim)] = [result["device"] for result in allocation["devices"]["results"]]
        return found


def on_n1(*devices: Object) -> list[Object]:
    return slices(*devices, pool="n1")


@pytest.fixture
async def cluster() -> AsyncIterator[ClaimCluster]:
    made = ClaimCluster()
    await made.extender.start()
    yield made
    await made.stop()
    await made.extender.stop()


async def test_a_pod_with_a_template_gets_a_device_and_a_node(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.template("one", GPU)
    await cluster.pod("p", resourceClaimTemplateName="one")
    assert cluster.node_of("p") == "n1"
    [claim] = cluster.all(RESOURCE_CLAIMS)
    assert cluster.devices() == {objects.name(claim): ["gpu-0"]}
    [user] = claim["status"]["reservedFor"]
    assert (user["resource"], user["name"]) == ("pods", "p")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_pod_waits_for_a_device_and_gets_it_when_one_is_free(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.template("one", GPU)
    for name in ("p", "q"):
        await cluster.pod(name, resourceClaimTemplateName="one")
    assert cluster.node_of("q") == ""
    assert cluster.why("q") == "0/1 nodes are available: 1 cannot allocate all claims."
    await cluster.end("p")
    assert cluster.node_of("q") == "n1"


async def test_pods_share_a_device_by_capacity(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0", shareable=True)))
    await cluster.template("half", SHARE)
    for name in ("p", "q", "r"):
        await cluster.pod(name, resourceClaimTemplateName="half")
    assert [cluster.node_of(name) for name in ("p", "q", "r")] == ["n1", "n1", ""]


async def test_pods_use_one_claim_together_on_its_node(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.add_node("n2")
    await cluster.claim("shared", GPU)
    for name in ("p", "q"):
        await cluster.pod(name, resourceClaimName="shared")
    assert [cluster.node_of(name) for name in ("p", "q")] == ["n1", "n1"]
    [claim] = cluster.all(RESOURCE_CLAIMS)
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["p", "q"]


async def test_a_pod_without_its_claim_says_what_it_waits_for(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.pod("p", resourceClaimName="none")
    assert cluster.why("p") == 'resourceclaim "none" not found'
    await cluster.pod("q", resourceClaimTemplateName="none")
    assert cluster.why("q") == "waiting for the ResourceClaim of gpu to be created from its template"
    await cluster.claim("none", GPU)
    await settle()
    assert cluster.node_of("p") == "n1"


async def test_an_unknown_class_is_named(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.claim("a", {"requests": [request("gpu", "big")]})
    await cluster.pod("p", resourceClaimName="a")
    assert 'deviceclass.resource.k8s.io "big" not found' in cluster.why("p")
    await cluster.create(DEVICE_CLASSES, device_class("big", "gpu"))
    await settle()
    assert cluster.node_of("p") == "n1"


async def test_new_slices_let_waiting_pods_in(cluster: ClaimCluster) -> None:
    await cluster.begin()
    await cluster.claim("a", GPU)
    await cluster.pod("p", resourceClaimName="a")
    assert cluster.node_of("p") == ""
    await cluster.create(RESOURCE_SLICES, on_n1(gpu("gpu-0"))[0])
    await settle()
    assert cluster.node_of("p") == "n1"


async def test_a_failed_bind_frees_the_devices_and_is_repeated_after_a_while(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.claim("a", GPU)
    refusals = ["the node is full"]

    async def refuse(body: dict[str, Any]) -> str:
        return refusals.pop() if refusals else ""

    cluster.extender.before_bind = refuse
    await cluster.pod("p", limits={"nvidia.com/gpu": "1"}, resourceClaimName="a")
    assert cluster.node_of("p") == ""
    assert cluster.devices() == {}
    await cluster.clock.advance(2.0)
    await settle()
    assert cluster.node_of("p") == "n1"
    assert cluster.devices() == {"a": ["gpu-0"]}


async def test_binding_waits_until_the_driver_has_made_the_device_ready(cluster: ClaimCluster) -> None:
    made = gpu("gpu-0", bindingConditions=["x/Ready"], bindingFailureConditions=["x/Failed"], bindsToNode=True)
    await cluster.begin(*on_n1(made))
    await cluster.claim("a", GPU)
    await cluster.pod("p", resourceClaimName="a")
    assert cluster.node_of("p") == ""
    assert cluster.devices() == {"a": ["gpu-0"]}
    await report(cluster, "x/Ready")
    assert cluster.node_of("p") == "n1"


async def test_a_device_that_cannot_be_made_ready_is_given_up(cluster: ClaimCluster) -> None:
    made = gpu("gpu-0", bindingConditions=["x/Ready"], bindingFailureConditions=["x/Failed"])
    await cluster.begin(*on_n1(made))
    await cluster.claim("a", GPU)
    await cluster.pod("p", resourceClaimName="a")
    await report(cluster, "x/Failed")
    assert cluster.node_of("p") == ""
    assert "device gpu-0 of claim default/a cannot be used: no room" in cluster.why("p")


async def report(cluster: ClaimCluster, kind: str) -> None:
    condition = {"type": kind, "status": "True", "message": "no room", "reason": "r"}
    device = {"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0", "conditions": [condition]}
    await cluster.change(RESOURCE_CLAIMS, "a", {"status": {"devices": [device]}}, "status")
    await settle()


async def test_an_extended_resource_is_served_by_a_claim_where_no_plugin_offers_it(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.create(DEVICE_CLASSES, device_class("card", "gpu", extendedResourceName="example.com/card"))
    await settle()
    for name in ("p", "q"):
        await cluster.pod(name, limits={"example.com/card": "1"})
    assert cluster.node_of("p") == "n1"
    assert "cannot allocate all claims" in cluster.why("q")
    [claim] = cluster.all(RESOURCE_CLAIMS)
    assert objects.name(claim).startswith("p-extended-resources-")
    status = objects.status(await cluster.get(PODS, "p"))["extendedResourceClaimStatus"]
    mapping = {"containerName": "main", "resourceName": "example.com/card", "requestName": "container-0-request-0"}
    assert status == {"resourceClaimName": objects.name(claim), "requestMappings": [mapping]}
    await cluster.end("p")
    assert cluster.node_of("q") == "n1"


async def test_a_plugin_of_the_node_serves_its_resource_before_claims(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.create(DEVICE_CLASSES, device_class("whole", "gpu", extendedResourceName="nvidia.com/gpu"))
    await cluster.pod("p", limits={"nvidia.com/gpu": "1"})
    assert cluster.node_of("p") == "n1"
    assert cluster.all(RESOURCE_CLAIMS) == []


async def test_a_claim_serves_a_resource_of_which_the_plugin_has_no_device_left(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(gpu("gpu-0")))
    await cluster.create(DEVICE_CLASSES, device_class("whole", "gpu", extendedResourceName="nvidia.com/gpu"))
    await cluster.change(NODES, "n1", {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}, "status")
    await cluster.pod("p", limits={"nvidia.com/gpu": "1"})
    assert cluster.node_of("p") == "n1"
    assert len(cluster.all(RESOURCE_CLAIMS)) == 1


async def test_a_node_must_list_what_an_extender_manages_where_a_class_serves_another(cluster: ClaimCluster) -> None:
    memory = "example.com/memory"
    await cluster.begin(*on_n1(gpu("gpu-0")), managed=(ManagedResource(memory),))
    await cluster.create(DEVICE_CLASSES, device_class("card", "gpu", extendedResourceName="example.com/card"))
    await settle()
    await cluster.pod("alone", limits={memory: "1000"})
    assert cluster.node_of("alone") == "n1"
    await cluster.pod("p", limits={"example.com/card": "1", memory: "1000"})
    assert "1 cannot fit resource" in cluster.why("p")
    await cluster.change(NODES, "n1", {"status": {"allocatable": {memory: "5000"}}}, "status")
    await settle()
    await cluster.clock.advance(1.1)
    await settle()
    assert cluster.node_of("p") == "n1"


async def test_claims_in_flight_count(cluster: ClaimCluster) -> None:
    await cluster.begin(*on_n1(*(gpu(f"gpu-{at}") for at in range(8))))
    await cluster.template("one", GPU)
    body = {"containers": [{"name": "m", "image": "i"}]}
    body["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    for number in range(12):
        await cluster.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": copy.deepcopy(body)})
    await settle()
    given = [device for found in cluster.devices().values() for device in found]
    assert sorted(given) == [f"gpu-{at}" for at in range(8)]
    assert len(cluster.bound()) == 8


def test_of_two_classes_with_one_resource_the_newer_serves_it() -> None:
    old, new = (device_class(name, "gpu", extendedResourceName="r") for name in ("old", "new"))
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    for order in ([old, new], [new, old]):
        assert classes_by_resource(order)["r"] == "new"
    assert classes_by_resource([old])["deviceclass.resource.kubernetes.io/old"] == "old"


def test_requests_for_extended_resources_are_named_by_container() -> None:
    def container(name: str, **limits: str) -> Object:
        return {"name": name, "resources": {"limits": limits}}

    spec = {"initContainers": [container("i", b="1")], "containers": [container("m", a="2", b="1", c="1", d="0")]}
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec}
    made = extended_claim(pod, {"a": "class-a", "b": "class-b", "d": "class-d"})
    assert made is not None
    requests = made[0]["spec"]["devices"]["requests"]
    wanted = [(each["name"], each["exactly"]["deviceClassName"], each["exactly"]["count"]) for each in requests]
    assert wanted == [
        ("container-0-request-0", "class-b", 1),
        ("container-1-request-0", "class-a", 2),
        ("container-1-request-1", "class-b", 1),
    ]
    assert extended_claim(pod, {"x": "class-x"}) is None
