"""HAMi's variables of containers: one is honored, and each other has a warning."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.dialects.container_limits import COMPUTE_LIMIT
from lamina.dialects.container_variables import CAPABILITIES, COMPUTE_VARIABLE, IGNORED
from lamina.errors import BadInput
from tests.dialects.pods import container, pod


def config(policy: str) -> Config:
    return load(f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nsharing: {{computePolicy: {policy}}}", "config")


def request(*env: dict[str, Any], cores: int = 30, policy: str = "", **rest: Any) -> PodRequest:
    """Of a pod whose container `main` has these variables, with a neighbor that has none."""
    main = {**container("main", gpumem=1000, gpucores=cores), "env": [*env]}
    side = container("side", gpumem=1000, gpucores=10)
    found = parse(pod(main, side, **rest), config(policy) if policy else DEFAULT)
    assert found is not None
    return found


def value(written: str, name: str = COMPUTE_VARIABLE) -> dict[str, Any]:
    return {"name": name, "value": written}


def limits(found: PodRequest) -> list[int]:
    return [each.most_cores for each in found.containers]


@pytest.mark.parametrize("written", ["force", "FORCE", "Force"])
def test_force_caps_the_container_at_its_request(written: str) -> None:
    found = request(value(written))
    assert limits(found) == [30, 0]
    assert found.warnings == ()


@pytest.mark.parametrize("written", ["default", "DEFAULT", ""])
def test_default_changes_nothing(written: str) -> None:
    assert request(value(written)) == request()


def test_the_last_of_several_values_counts() -> None:
    assert limits(request(value("force"), value("default"))) == [0, 0]
    assert limits(request(value("default"), value("force"))) == [30, 0]


def test_disable_keeps_the_limit_and_warns() -> None:
    found = request(value("disable"))
    assert limits(found) == [0, 0]
    assert found.warnings == (
        "GPU_CORE_UTILIZATION_POLICY=disable does not switch the compute limit off, because other pods on the GPU rely "
        "on it; request fewer cores, or none, to use the time that others leave",
    )


def test_force_has_nothing_to_cap_without_a_share_of_compute() -> None:
    assert limits(request(value("force"), cores=0)) == [0, 0]
    whole = parse(pod({**container("main", gpu=1), "env": [value("force")]}), DEFAULT)
    assert whole is not None
    assert limits(whole) == [0]


def test_where_the_cluster_caps_force_holds_already() -> None:
    assert request(value("force"), policy="cap") == request(policy="cap")


@pytest.mark.parametrize(
    ("env", "rest", "sentence"),
    [
        (value("forced"), {}, 'must be default, force or disable, got "forced"'),
        (value("$(POLICY)"), {}, "must be default, force or disable"),
        (value(" force"), {}, "must be default, force or disable"),
        ({"name": COMPUTE_VARIABLE, "valueFrom": {"fieldRef": {}}}, {}, "must have its value in the pod"),
        (value("force"), {"policy": "none"}, "cannot be held: the compute policy of the cluster is none"),
        (value("force"), {"annotations": {COMPUTE_LIMIT: "main=60"}}, "to its request, 30, and .* to 60"),
    ],
)
def test_what_cannot_be_held_is_refused(env: dict[str, Any], rest: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=f'container "main": {COMPUTE_VARIABLE}.*{sentence}'):
        request(env, **rest)


def test_force_agrees_with_the_same_limit_in_the_annotation() -> None:
    assert limits(request(value("force"), annotations={COMPUTE_LIMIT: "main=30"})) == [30, 0]


@pytest.mark.parametrize("name", [*IGNORED, "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_SM_LIMIT_12"])
def test_each_other_variable_has_a_warning(name: str) -> None:
    found = request(value("true", name))
    assert found.containers == request().containers
    assert [warning.partition(":")[0] for warning in found.warnings] == [f"the variable {name} has no effect"]


@pytest.mark.parametrize(
    ("written", "warned"),
    [("graphics", True), ("compute,display", True), ("compute,utility", False), ("all", False), ("", False)],
)
def test_who_renders_on_a_share_hears_that_its_memory_is_not_counted(written: str, warned: bool) -> None:
    """Many images name `all`, whatever they do."""
    found = request(value(written, CAPABILITIES))
    assert limits(found) == [0, 0]
    assert ["memory that Vulkan and OpenGL take is not counted" in each for each in found.warnings] == [True] * warned


def test_rendering_on_a_whole_gpu_is_nothing_to_warn_of() -> None:
    alone = pod({**container(gpu=1), "env": [value("graphics", CAPABILITIES)]})
    found = parse(alone, DEFAULT)
    assert found is not None and found.warnings == ()


def test_variables_of_others_and_of_containers_without_a_gpu_are_left_alone() -> None:
    assert request(value("1", "CUDA_DEVICE_MEMORY_LIMIT_X"), value("1", "PATH")).warnings == ()
    plain = {"name": "plain", "env": [value("forced"), value("true", "CUDA_DISABLE_CONTROL")]}
    found = parse(pod(container("main", gpumem=1000), plain), DEFAULT)
    assert found is not None
    assert found.warnings == ()


def test_several_containers_with_one_variable_have_one_warning() -> None:
    env = [value("true", "CUDA_DISABLE_CONTROL")]
    found = parse(pod(*({**container(name, gpumem=1000), "env": env} for name in ("one", "two"))), DEFAULT)
    assert found is not None
    assert len(found.warnings) == 1


@pytest.mark.parametrize(
    ("amounts", "written"),
    [
        (amounts, written)
        for amounts in (
            {"volcano.sh/vgpu-memory": 1000, "volcano.sh/vgpu-cores": 30, "volcano.sh/vgpu-number": 1},
            {"nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 30},
        )
        for written in ("force", "default")
    ],
)
def test_the_dialects_of_the_family_are_alike(amounts: dict[str, Any], written: str) -> None:
    found = parse(pod({**container("main", **amounts), "env": [value(written)]}), DEFAULT)
    assert found is not None
    assert limits(found) == [30 if written == "force" else 0]
