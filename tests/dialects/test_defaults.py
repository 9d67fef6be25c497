"""What admission adds, applied with a JSON Patch library as the API server would."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.dialects import defaults, parse, schedulers
from lamina.dialects.config import DEFAULT, Config, load
from lamina.errors import BadInput
from tests.dialects.pods import Pod, asking, container, pod


def admitted(manifest: Pod, config: Config = DEFAULT) -> Pod:
    patch = [fill.operation for fill in defaults(manifest, config)]
    result: Pod = jsonpatch.apply_patch(manifest, patch)
    return result


def limits(manifest: Pod, config: Config = DEFAULT, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = admitted(manifest, config)["spec"]["containers"][index]["resources"]["limits"]
    return found


@pytest.mark.parametrize(
    ("asked", "added"),
    [
        ({"gpumem": 3000}, {"nvidia.com/gpu": "1"}),
        ({"gpucores": 30}, {"nvidia.com/gpu": "1"}),
        ({"gpumem_percentage": 50}, {"nvidia.com/gpu": "1"}),
        ({"gpu": 1}, {"nvidia.com/gpucores": "100"}),
        ({"gpu": 2, "gpumem_percentage": 100}, {"nvidia.com/gpucores": "100"}),
        ({"gpumem_percentage": 100}, {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}),
        ({"gpu": 1, "gpumem": 3000}, {}),
        ({"gpu": 1, "gpumem_percentage": 100, "gpucores": 20}, {}),
    ],
)
def test_the_missing_count_and_the_cores_of_whole_gpus_are_filled_in(asked: dict[str, Any], added: object) -> None:
    manifest = asking(**asked)
    given = manifest["spec"]["containers"][0]["resources"]["limits"]
    assert limits(manifest) == {**given, **added}  # type: ignore[dict-item]


def test_the_default_number_is_configurable() -> None:
    assert limits(asking(gpumem=1), load("hami: {defaultGPUNum: 3}", "c"))["nvidia.com/gpu"] == "3"


def test_where_only_requests_are_given_limits_are_made() -> None:
    spec = {"name": "c", "resources": {"requests": {"nvidia.com/gpumem": 5}}}
    assert limits(pod(spec)) == {"nvidia.com/gpu": "1"}


def test_the_scheduler_is_named_where_nobody_or_the_default_one_is() -> None:
    for spec in ({}, {"schedulerName": ""}, {"schedulerName": "default-scheduler"}):
        assert admitted(pod(container(gpu=1), **spec))["spec"]["schedulerName"] == "hami-scheduler"
    own = load("hami: {schedulerName: mine}", "c")
    assert admitted(asking(gpu=1), own)["spec"]["schedulerName"] == "mine"
    assert "mine" in schedulers(own)
    kept = admitted(pod(container(gpu=1), schedulerName="4pd-scheduler"))
    assert kept["spec"]["schedulerName"] == "4pd-scheduler"
    assert "schedulerName" not in admitted(asking(gpu=1), load("hami: {schedulerName: ''}", "c"))["spec"]


def test_a_pod_of_another_scheduler_is_not_touched() -> None:
    assert defaults(pod(container(gpumem=1), schedulerName="other"), DEFAULT) == ()


def test_a_pod_that_asks_no_gpu_is_not_touched() -> None:
    assert defaults(pod(container(), nodeName="n"), load("hami: {runtimeClassName: x}", "c")) == ()


def test_overwrite_env_hides_gpus_from_pods_that_ask_none_and_does_nothing_else_to_them() -> None:
    config = load("hami: {overwriteEnv: true, runtimeClassName: x}", "c")
    hidden = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}
    one, other = container("one"), container("other") | {"env": [hidden]}
    assert [fill[:2] for fill in defaults(pod(one, other, nodeName="n"), config)] == [
        ("/spec/containers/0/env", [hidden])
    ]
    assert defaults(pod(container(), schedulerName="another"), config) == ()


def test_a_pod_with_a_node_already_is_refused() -> None:
    with pytest.raises(BadInput, match="assigned to node n1 already"):
        defaults(pod(container(gpu=1), nodeName="n1"), DEFAULT)


def test_the_runtime_class_is_given_to_pods_that_name_none() -> None:
    config = load("hami: {runtimeClassName: nvidia}", "c")
    assert admitted(asking(gpu=1), config)["spec"]["runtimeClassName"] == "nvidia"
    assert admitted(pod(container(gpu=1), runtimeClassName="kata"), config)["spec"]["runtimeClassName"] == "kata"


@pytest.mark.parametrize("env", [None, [], [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]])
def test_overwrite_env_hides_gpus_from_containers_that_ask_none(env: object) -> None:
    config = load("hami: {overwriteEnv: true}", "c")
    helper = container("helper") | ({} if env is None else {"env": env})
    first, second = admitted(pod(container(gpu=1), helper), config)["spec"]["containers"]
    assert second["env"][-1] == {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}
    assert "env" not in first


amounts = st.fixed_dictionaries(
    {},
    optional={
        "gpu": st.integers(1, 4),
        "gpumem": st.integers(1, 50_000),
        "gpumem_percentage": st.integers(1, 100),
        "gpucores": st.integers(0, 100),
        "priority": st.integers(0, 1),
    },
)
configs = st.sampled_from(
    [DEFAULT, load("hami: {defaultMemory: 5000, defaultCores: 20, defaultGPUNum: 2, overwriteEnv: true}", "c")]
)


def test_a_count_alone_is_marked_so_that_it_is_known_after_cores_were_filled_in() -> None:
    marked = {fill.pointer: fill.value for fill in defaults(pod(container(gpu=1)), DEFAULT)}
    assert marked["/metadata/annotations/lamina.dev~1counts-gpus"] == "true"
    for asked in ({"gpu": 1, "gpucores": 100}, {"gpu": 1, "gpumem": 1000}, {"gpumem": 1000}):
        pointers = [fill.pointer for fill in defaults(pod(container(**asked)), DEFAULT)]
        assert not any(pointer.startswith("/metadata") for pointer in pointers)
    request = parse(admitted(pod(container(gpu=1)), DEFAULT), DEFAULT)
    assert request is not None
    assert request.plain == ("nvidia.com/gpu",)


@given(st.lists(amounts, min_size=1, max_size=3), st.lists(amounts, max_size=2), configs)
def test_filling_in_changes_nothing_of_what_is_asked_and_is_done_once(
    main: list[dict[str, Any]], init: list[dict[str, Any]], config: Config
) -> None:
    manifest = pod(
        *(container(f"m{i}", **asked) for i, asked in enumerate(main)),
        init=tuple(container(f"i{i}", **asked) for i, asked in enumerate(init)),
    )
    before = copy.deepcopy(manifest)
    try:
        request = parse(manifest, config)
    except BadInput:
        return
    after = admitted(manifest, config)
    assert parse(after, config) == request
    assert defaults(after, config) == ()
    assert manifest == before
