"""What admission adds, applied with a JSON Patch library as the API server would."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.admission.review import Verdict, review
from lamina.configuration import DEFAULT, Config, load
from lamina.dialects import parse, scheduler_names, template_warnings
from lamina.errors import BadInput
from tests.dialects.pods import Pod, asking, changes_of, container, pod


def admitted(manifest: Pod, config: Config = DEFAULT) -> Pod:
    patch = [change.to_json() for change in changes_of(manifest, config)]
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


def test_limits_are_created_if_only_requests_are_given() -> None:
    spec = {"name": "c", "resources": {"requests": {"nvidia.com/gpumem": 5}}}
    assert limits(pod(spec)) == {"nvidia.com/gpu": "1"}


def test_the_scheduler_is_filled_in_if_none_or_the_default_one_is_named() -> None:
    for spec in ({}, {"schedulerName": ""}, {"schedulerName": "default-scheduler"}):
        assert admitted(pod(container(gpu=1), **spec))["spec"]["schedulerName"] == "hami-scheduler"
    own = load("hami: {schedulerName: mine}", "c")
    assert admitted(asking(gpu=1), own)["spec"]["schedulerName"] == "mine"
    assert "mine" in scheduler_names(own)
    kept = admitted(pod(container(gpu=1), schedulerName="4pd-scheduler"))
    assert kept["spec"]["schedulerName"] == "4pd-scheduler"
    assert "schedulerName" not in admitted(asking(gpu=1), load("hami: {schedulerName: ''}", "c"))["spec"]


ITS_OWN = load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {assigned: mine}", "c")
NOT_SERVED = load(
    "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {served: [default-scheduler], assigned: mine}",
    "c",
)
KEPT = load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {assigned: ''}", "c")


@pytest.mark.parametrize(
    ("requested", "own"),
    [
        ({"nvidia.com/gpumem": "1000"}, "hami-scheduler"),
        ({"nvidia.com/gpu": "1"}, "hami-scheduler"),
        ({"volcano.sh/vgpu-memory": "1000"}, "volcano"),
        ({"volcano.sh/vgpu-number": "1"}, "volcano"),
        ({"volcano.sh/gpu-mem.128Mi": "8"}, "volcano"),
        ({"volcano.sh/gpu-mem.128Mi": "8", "volcano.sh/gpu-core.percentage": "25"}, "volcano"),
    ],
)
@pytest.mark.parametrize("named", [{}, {"schedulerName": ""}, {"schedulerName": "default-scheduler"}])
def test_pods_of_every_dialect_reach_a_scheduler_that_lamina_serves(
    requested: dict[str, str], own: str, named: dict[str, str]
) -> None:
    manifest = pod(container(**requested), **named)
    assert admitted(manifest)["spec"]["schedulerName"] == own
    assert admitted(manifest, ITS_OWN)["spec"]["schedulerName"] == (own if own == "volcano" else "mine")
    assert admitted(manifest, NOT_SERVED)["spec"]["schedulerName"] == "mine"
    assert admitted(manifest, KEPT)["spec"].get("schedulerName") == named.get("schedulerName")


@pytest.mark.parametrize(
    ("requested", "warned"),
    [
        ({"nvidia.com/gpumem": "1000"}, "nvidia.com/gpumem"),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}, "nvidia.com/gpucores"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}, "volcano.sh/vgpu-memory"),
        ({"volcano.sh/gpu-mem.128Mi": "8"}, "volcano.sh/gpu-mem.128Mi"),
        ({"nvidia.com/gpu": "1"}, ""),
        ({"nvidia.com/mig-1g.5gb": "1"}, ""),
        ({"cpu": "1"}, ""),
        ({}, ""),
    ],
)
def test_who_asks_for_a_share_of_another_scheduler_is_warned(requested: dict[str, str], warned: str) -> None:
    manifest = pod(container(**requested), schedulerName="my-scheduler")
    sentence = (
        "schedulerName my-scheduler is not in schedulers.served, so Lamina does not place this pod; name "
        f"hami-scheduler, unless another system serves {warned}"
    )
    verdict, demand = review(manifest, DEFAULT)
    assert verdict == Verdict(allowed=True, warnings=(sentence,) if warned else ()) and demand is None
    workload = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": manifest}}
    assert template_warnings(workload, "default", DEFAULT) == verdict.warnings
    served = pod(container(**requested), schedulerName="lamina-scheduler")
    assert not any("is not in schedulers.served" in each for each in review(served, DEFAULT)[0].warnings)


def test_a_pod_of_another_scheduler_that_cannot_be_read_is_left_alone() -> None:
    manifest = pod({"name": "c", "resources": {"limits": "none"}}, schedulerName="my-scheduler")
    assert review(manifest, DEFAULT) == (Verdict(allowed=True), None)


def test_a_pod_of_another_scheduler_is_not_changed() -> None:
    assert changes_of(pod(container(gpumem=1), schedulerName="other"), DEFAULT) == ()


def test_a_pod_without_gpus_is_not_changed() -> None:
    assert changes_of(pod(container(), nodeName="n"), load("hami: {runtimeClassName: x}", "c")) == ()


def test_a_pod_that_is_already_assigned_to_a_node_is_refused() -> None:
    with pytest.raises(BadInput, match="already assigned to node n1"):
        changes_of(pod(container(gpu=1), nodeName="n1"), DEFAULT)


def test_the_runtime_class_is_given_to_pods_that_name_none() -> None:
    config = load("hami: {runtimeClassName: nvidia}", "c")
    assert admitted(asking(gpu=1), config)["spec"]["runtimeClassName"] == "nvidia"
    assert admitted(pod(container(gpu=1), runtimeClassName="kata"), config)["spec"]["runtimeClassName"] == "kata"


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
configs = st.sampled_from([DEFAULT, load("hami: {defaultMemory: 5000, defaultCores: 20, defaultGPUNum: 2}", "c")])


def test_a_count_alone_is_marked_so_that_it_is_known_after_cores_were_filled_in() -> None:
    marked = {change.pointer: change.value for change in changes_of(pod(container(gpu=1)), DEFAULT)}
    assert marked["/metadata/annotations/lamina.dev~1counts-gpus"] == "true"
    for asked in ({"gpu": 1, "gpucores": 100}, {"gpu": 1, "gpumem": 1000}, {"gpumem": 1000}):
        pointers = [change.pointer for change in changes_of(pod(container(**asked)), DEFAULT)]
        assert not any(pointer.startswith("/metadata") for pointer in pointers)
    request = parse(admitted(pod(container(gpu=1)), DEFAULT), DEFAULT)
    assert request is not None
    assert request.native_devices == ("nvidia.com/gpu",)


@given(st.lists(amounts, min_size=1, max_size=3), st.lists(amounts, max_size=2), configs)
def test_defaults_do_not_change_the_request_and_are_filled_in_once(
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
    assert changes_of(after, config) == ()
    assert manifest == before
