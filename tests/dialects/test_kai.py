"""KAI's dialect, which requests by annotation: what a pod gets, and a sentence for each that is refused."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.admission.review import review
from lamina.configuration import DEFAULT, load
from lamina.core.gpus import Mode
from lamina.core.requests import PodRequest
from lamina.dialects import explain_missing_defaults, fill_defaults, parse
from lamina.errors import BadInput
from tests.dialects.pods import Pod, container, pod

TICKET = "lamina.dev/gpu-shares"
BY_CONTAINER = "nvidia.com/container."


def manifest(*containers: dict[str, Any], scheduler: str = "kai-scheduler", init: Any = (), **written: str) -> Pod:
    """A pod with these annotations: `gpu_fraction="0.5"` is gpu-fraction; a name with a slash stays as it is."""
    annotations = {key if "/" in key else key.replace("_", "-"): value for key, value in written.items()}
    return pod(*(containers or (container(),)), init=init, annotations=annotations, schedulerName=scheduler)


def request(*containers: dict[str, Any], **written: Any) -> PodRequest:
    found = parse(manifest(*containers, **written), DEFAULT)
    assert found is not None and found.dialect == "kai"
    return found


def amounts(*containers: dict[str, Any], **written: Any) -> list[tuple[object, ...]]:
    found = request(*containers, **written).containers
    return [(one.container, one.count, one.memory_mib, one.memory_percent, one.cores) for one in found]


@pytest.mark.parametrize("percent", range(1, 100))
def test_a_fraction_is_a_share_of_memory_and_time(percent: int) -> None:
    for written in (f"0.{percent:02d}", f".{percent:02d}0", f"{percent}e-2"):
        assert amounts(gpu_fraction=written) == [("main", 1, None, percent, percent)]


@pytest.mark.parametrize(
    "written",
    ["0", "1", "1.0", "-0.5", "0.125", "0.001", "50%", "500m", "1/2", "", ".", "e", "NaN", "1e-99", "٠.5", " 0.5"],
)
def test_other_fractions_are_refused(written: str) -> None:
    with pytest.raises(
        BadInput, match=r"annotation gpu-fraction must be a number from 0\.01 to 0\.99 with at most two"
    ):
        request(gpu_fraction=written)


@pytest.mark.parametrize("mib", [1, 2000, 2147483647])
def test_memory_is_in_mib(mib: int) -> None:
    assert amounts(gpu_memory=str(mib)) == [("main", 1, mib, None, 0)]


@pytest.mark.parametrize("written", ["0", "-1", "2147483648", "2000Mi", "0.5", "", "x" * 5000, "٢"])
def test_other_amounts_of_memory_are_refused_in_a_short_sentence(written: str) -> None:
    with pytest.raises(
        BadInput, match="annotation gpu-memory must be an integer from 1 to 2147483647 in MiB"
    ) as refused:
        request(gpu_memory=written)
    assert len(str(refused.value)) < 250


def test_the_first_container_gets_it_or_the_one_that_is_named() -> None:
    two, early = (container("main"), container("train")), container("early")
    assert amounts(*two, init=(early,), gpu_memory="10") == [("main", 1, 10, None, 0)]
    assert amounts(*two, gpu_memory="10", gpu_fraction_container_name="train") == [("train", 1, 10, None, 0)]
    (found,) = request(*two, init=(early,), gpu_memory="10", gpu_fraction_container_name="early").containers
    assert (found.container, found.init) == ("early", True)


@pytest.mark.parametrize(("written", "count"), [("1", 1), ("2", 2), ("1024", 1024)])
def test_the_same_of_several_gpus(written: str, count: int) -> None:
    assert amounts(gpu_fraction="0.5", gpu_fraction_num_devices=written) == [("main", count, None, 50, 50)]


@pytest.mark.parametrize(
    ("written", "mib"), [("8000", 8000), ("8000Mi", 8000), ("8Gi", 8192), ("1Ti", 1048576), ("2047Ti", 2146435072)]
)
def test_memory_by_container(written: str, mib: int) -> None:
    for fields in (("request",), ("limit",), ("request", "limit")):
        asked = {f"{BY_CONTAINER}train.gpu-memory.{field}": written for field in fields}
        both = (container("main"), container("train"))
        assert amounts(*both, **asked) == [("train", 1, mib, None, 0)]
        asked |= {f"{BY_CONTAINER}main.gpu-memory.request": "5"}
        assert amounts(*both, **asked) == [("main", 1, 5, None, 0), ("train", 1, mib, None, 0)]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            {"gpu_fraction": "0.5", "gpu_memory": "10"},
            "gpu-fraction and gpu-memory exclude each other; remove one of them",
        ),
        (
            {"gpu_fraction_num_devices": "2"},
            "gpu-fraction-num-devices requires an amount; add gpu-fraction or gpu-memory",
        ),
        ({"gpu_fraction_container_name": "main"}, "gpu-fraction-container-name requires an amount"),
        ({"gpu_memory": "1", "gpu_fraction_num_devices": "0"}, "num-devices must be an integer from 1 to 1024, got "),
        ({"gpu_memory": "1", "gpu_fraction_num_devices": "1025"}, "num-devices must be an integer from 1 to 1024"),
        ({"gpu_memory": "1", "gpu_fraction_container_name": "x"}, 'names container "x", which the pod does not have'),
        ({"gpu_memory": "1", "gpu_fractions": "0.5"}, "unknown annotation gpu-fractions; did you mean gpu-fraction?"),
        (
            {"gpu_memory": "1", "kai.scheduler/gpu-compute-sharing-mode": "mps"},
            'gpu-compute-sharing-mode must be time-slicing or sm-sharing, got "mps"',
        ),
        (
            {"gpu_memory": "1", "mps": "true", "kai.scheduler/gpu-compute-sharing-mode": "time-slicing"},
            "annotations mps and kai.scheduler/gpu-compute-sharing-mode ask for different modes; remove one of them",
        ),
        ({"gpu_memory": "1", "kai.scheduler/gpu-sharing": "x"}, "unknown annotation kai.scheduler/gpu-sharing"),
        ({f"{BY_CONTAINER}main.gpus.devices": "GPU-0"}, "cannot be set, because Lamina chooses the GPUs; remove it"),
        (
            {f"{BY_CONTAINER}main.gpu-memory.limits": "1Gi"},
            "unknown annotation .*comes gpu-memory.request or gpu-memory.limit",
        ),
        ({f"{BY_CONTAINER}.gpu-memory.limit": "1Gi"}, "unknown annotation"),
        ({f"{BY_CONTAINER}x.gpu-memory.limit": "1Gi"}, 'names container "x", which the pod does not have'),
        (
            {f"{BY_CONTAINER}main.gpu-memory.limit": "1G"},
            "must be a number of MiB such as 8000, or a number with Mi, Gi",
        ),
        ({f"{BY_CONTAINER}main.gpu-memory.limit": "0"}, "must be a number of MiB such as 8000"),
        ({f"{BY_CONTAINER}main.gpu-memory.limit": "2048Ti"}, "must be a number of MiB such as 8000"),
        (
            {f"{BY_CONTAINER}main.gpu-memory.limit": "5", "gpu_memory": "5"},
            "gpu-memory and nvidia.com/container.* exclude",
        ),
        (
            {f"{BY_CONTAINER}main.gpu-memory.limit": "4", f"{BY_CONTAINER}main.gpu-memory.request": "5"},
            "gpu-memory.limit must be at least .*gpu-memory.request, 5 MiB, got 4 MiB",
        ),
        ({"gpu_memory": "1", "nvidia.com/use-gpu": "A100"}, "unknown annotation nvidia.com/use-gpu"),
    ],
)
def test_what_cannot_be_honored_is_refused(written: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        request(**written)


@pytest.mark.parametrize(
    ("name", "dialect"),
    [("nvidia.com/gpu", "hami"), ("volcano.sh/vgpu-number", "volcano")],
)
def test_resources_of_another_dialect_in_the_same_pod_are_refused(name: str, dialect: str) -> None:
    expected = f"{name} of the {dialect} dialect cannot be combined with annotation gpu-memory in one pod"
    for two in ([container(**{name: 1})], [container(), container("other", **{name: 1})]):
        with pytest.raises(BadInput, match=expected):
            request(*two, gpu_memory="1")


def test_a_privileged_container_is_refused() -> None:
    with pytest.raises(BadInput, match="a privileged container sees every GPU"):
        request(container() | {"securityContext": {"privileged": True}}, gpu_memory="1")


@pytest.mark.parametrize("scheduler", ["default-scheduler", "theirs", "", None])
def test_in_pods_of_other_schedulers_the_annotations_mean_nothing(scheduler: str) -> None:
    asked = manifest(scheduler=scheduler, gpu_memory="whatever", gpu_fraction="x")
    assert parse(asked, DEFAULT) is None
    assert review(asked, DEFAULT)[0].allowed


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "runai-scheduler", "lamina-scheduler", "hami-scheduler"])
def test_in_pods_of_served_schedulers_they_count(scheduler: str) -> None:
    assert amounts(scheduler=scheduler, gpu_memory="7") == [("main", 1, 7, None, 0)]


def test_who_keeps_kai_takes_its_scheduler_out_of_the_list() -> None:
    config = load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {served: [lamina-scheduler]}", "c")
    assert parse(manifest(gpu_memory="7"), config) is None


def test_annotations_choose_gpus_too() -> None:
    found = request(gpu_memory="1", **{"nvidia.com/use-gputype": "A100", "hami.io/gpu-scheduler-policy": "spread"})
    assert (found.selector.types, found.selector.modes, found.gpu_policy) == (("A100",), (Mode.QUOTA,), "spread")


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ({}, Mode.QUOTA),
        ({"mps": "false"}, Mode.QUOTA),
        ({"kai.scheduler/gpu-compute-sharing-mode": "time-slicing"}, Mode.QUOTA),
        ({"mps": "true"}, Mode.MPS),
        ({"kai.scheduler/gpu-compute-sharing-mode": "sm-sharing"}, Mode.MPS),
        ({"kai.scheduler/gpu-compute-sharing-mode": "sm-sharing", "mps": "true"}, Mode.MPS),
        ({"mps": "true", "nvidia.com/vgpu-mode": "hami-core"}, Mode.QUOTA),
    ],
)
def test_the_pod_chooses_between_turns_and_mps(written: dict[str, str], mode: Mode) -> None:
    assert request(gpu_fraction="0.5", **written).selector.modes == (mode,)


@given(st.integers(1, 99), st.integers(1, 1024), st.booleans())
def test_admission_fills_in_tickets_and_the_request_stays_the_same(percent: int, count: int, init: bool) -> None:
    early = (container("early"),)
    asked = manifest(
        init=early,
        gpu_fraction=f"0.{percent:02d}",
        gpu_fraction_num_devices=str(count),
        gpu_fraction_container_name="early" if init else "main",
    )
    before = parse(asked, DEFAULT)
    assert before is not None and f"{TICKET} is missing" in explain_missing_defaults(asked, before, DEFAULT)
    after = jsonpatch.apply_patch(asked, [change.to_json() for change in fill_defaults(asked, before, DEFAULT)])
    holder = after["spec"]["initContainers" if init else "containers"][0]
    assert holder["resources"]["limits"] == {TICKET: str(count)}
    assert after["spec"]["schedulerName"] == "kai-scheduler"
    assert parse(after, DEFAULT) == before and explain_missing_defaults(after, before, DEFAULT) == ""


@pytest.mark.parametrize(
    ("tickets", "written", "sentence"),
    [
        ({TICKET: 1}, {}, "admission fills in the GPUs of annotations, and there are none"),
        ({TICKET: 1}, {"gpu_memory": "1", "gpu_fraction_num_devices": "2"}, f"{TICKET} is filled in .* must be 2"),
        ({TICKET: 2}, {"gpu_memory": "1"}, f"{TICKET} is filled in at admission and must be 1"),
        ({TICKET: 1}, {"gpu_memory": "1", "gpu_fraction_container_name": "other"}, f'"main": {TICKET} .* must be 0'),
    ],
)
def test_annotations_that_no_longer_say_what_was_admitted_are_refused(
    tickets: dict[str, int], written: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        request(container(**tickets), container("other"), **written)
