"""Ephemeral containers are added to pods that exist, through a subresource of their own, and never change."""

from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import ApiError
from tests.kubectl import Kubectl
from tests.lab_api.apis import Bench
from tests.lab_api.servers import Threaded

SUBRESOURCE = "ephemeralcontainers"


def debugger(name: str = "debugger", **more: Any) -> Object:
    return {"name": name, "image": "busybox", **more}


async def add(bench: Bench, *containers: Object) -> Object:
    return await bench.patch("pods", "a", {"spec": {"ephemeralContainers": list(containers)}}, subresource=SUBRESOURCE)


async def refusal(bench: Bench, *containers: Object) -> str:
    before = bench.get("pods", "a")
    with pytest.raises(ApiError) as refused:
        await add(bench, *containers)
    assert bench.get("pods", "a") == before
    assert refused.value.code == 422
    return refused.value.message.partition("is invalid: ")[2]


async def test_one_is_added_with_the_defaults_of_a_container(bench: Bench) -> None:
    before = await bench.pod("a", node="node-0")
    after = await add(bench, debugger(targetContainerName="main"))
    added = after["spec"]["ephemeralContainers"]
    assert [(each["name"], each["imagePullPolicy"], each["resources"]) for each in added] == [
        ("debugger", "Always", {})
    ]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert {**after["spec"], "ephemeralContainers": None} == {**before["spec"], "ephemeralContainers": None}
    assert after["status"] == before["status"]


async def test_nothing_else_changes_through_the_subresource(bench: Bench) -> None:
    before = await bench.pod("a", node="node-0")
    change = {
        "metadata": {"labels": {"new": "label"}},
        "spec": {"ephemeralContainers": [debugger()], "priority": 7},
        "status": {"phase": "Failed"},
    }
    after = await bench.patch("pods", "a", change, subresource=SUBRESOURCE)
    assert "labels" not in after["metadata"]
    assert (after["spec"]["priority"], after["status"]) == (0, before["status"])
    assert after["spec"]["ephemeralContainers"]


async def test_what_exists_is_neither_changed_nor_removed(bench: Bench) -> None:
    await bench.pod("a", node="node-0")
    await add(bench, debugger())
    added = await add(bench, debugger(), debugger("second"))
    assert len(added["spec"]["ephemeralContainers"]) == 2
    same = bench.get("pods", "a")
    assert same
    assert same["spec"]["ephemeralContainers"][0]["name"] == "debugger"
    assert 'existing ephemeral containers "debugger" may not be removed' in await refusal(bench, debugger("second"))
    changed = await refusal(bench, debugger(image="other"), debugger("second"))
    assert 'existing ephemeral containers "debugger" may not be changed' in changed


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (debugger("main"), 'spec.ephemeralContainers[0].name: Duplicate value: "main"'),
        (debugger("Main"), "spec.ephemeralContainers[0].name: Invalid value"),
        ({"name": "debugger"}, "spec.ephemeralContainers[0].image: Required value"),
        (
            debugger(targetContainerName="none"),
            'spec.ephemeralContainers[0].targetContainerName: Not found: "none"',
        ),
        (
            debugger(targetContainerName="debugger"),
            'spec.ephemeralContainers[0].targetContainerName: Not found: "debugger"',
        ),
        (
            debugger(resources={"limits": {"nvidia.com/gpu": "1"}}),
            "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
        ),
        *(
            (debugger(**{field: value}), f"spec.ephemeralContainers[0].{field}: Forbidden: cannot be set")
            for field, value in (
                ("ports", [{"containerPort": 80}]),
                ("lifecycle", {"preStop": {"exec": {"command": ["true"]}}}),
                ("livenessProbe", {"exec": {"command": ["true"]}}),
                ("readinessProbe", {"exec": {"command": ["true"]}}),
                ("startupProbe", {"exec": {"command": ["true"]}}),
            )
        ),
    ],
)
async def test_bad_ones_are_refused(bench: Bench, container: Object, why: str) -> None:
    await bench.pod("a", node="node-0")
    assert why in await refusal(bench, container)


async def test_a_new_pod_and_a_template_have_none(bench: Bench) -> None:
    spec = {"containers": [debugger("main")], "ephemeralContainers": [debugger()]}
    with pytest.raises(ApiError, match=r"spec\.ephemeralContainers: Forbidden: cannot be set on create"):
        await bench.create("pods", {"metadata": {"name": "a"}, "spec": spec})
    labels = {"app": "a"}
    workload = {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    with pytest.raises(ApiError, match="ephemeral containers not allowed in pod template"):
        await bench.create("deployments.apps", workload)


async def test_an_update_of_the_pod_adds_none(bench: Bench) -> None:
    await bench.pod("a", node="node-0")
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        await bench.patch("pods", "a", {"spec": {"ephemeralContainers": [debugger()]}})


def test_kubectl_debug_adds_one(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    words = ("--image=busybox", "--container=look", "--target=main", "--attach=false", "--", "sleep", "9")
    kubectl("debug", "a", *words)
    assert kubectl("get", "pod", "a", "-o", "jsonpath={.spec.ephemeralContainers[*].name}") == "look"
    assert "Ephemeral Containers:\n  look:" in kubectl("describe", "pod", "a")
