import pytest

from lamina.dialects import parse
from lamina.dialects.config import DEFAULT, load
from lamina.errors import BadInput
from lamina.model.gpus import Mode
from lamina.model.policies import GPU_POLICIES, NODE_POLICIES
from lamina.model.requests import PodRequest, Wishes
from tests.dialects.pods import container, pod


def annotated(config: str = "", **annotations: str) -> PodRequest:
    """The request of a pod whose annotations are written in Python's spelling; the prefix follows from the key."""
    named = {}
    for key, value in annotations.items():
        prefix = "hami.io" if "policy" in key or "scoring" in key else "nvidia.com"
        named[f"{prefix}/{key.replace('_', '-')}"] = value
    request = parse(pod(container(gpu=1, gpumem=1), annotations=named), load(config, "c"))
    assert request is not None
    return request


def test_wishes_are_comma_lists_without_blanks_and_empty_ones_are_no_wish() -> None:
    request = annotated(
        use_gputype="A100, V100", nouse_gputype="1080", use_gpuuuid=" GPU-a ,GPU-b,", nouse_gpuuuid=" , "
    )
    assert request.wishes == Wishes(types=("A100", "V100"), not_types=("1080",), uuids=("GPU-a", "GPU-b"), not_uuids=())
    assert annotated().wishes == Wishes()


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_policies_come_from_the_annotation_before_the_configuration(policy: str) -> None:
    other = {"binpack": "spread", "spread": "binpack"}[policy]
    config = f"hami: {{nodeSchedulerPolicy: {other}, gpuSchedulerPolicy: {other}}}"
    assert annotated(config, node_scheduler_policy=policy).node_policy == policy
    assert annotated(config, gpu_scheduler_policy=policy).gpu_policy == policy
    assert annotated(config).node_policy == annotated(config).gpu_policy == other


@pytest.mark.parametrize("policy", ["topology-aware", "mutex", "numa", "binpack,spread", "BINPACK", "best"])
def test_other_node_policies_are_refused_by_name(policy: str) -> None:
    with pytest.raises(BadInput) as refused:
        annotated(node_scheduler_policy=policy)
    expected = f"annotation hami.io/node-scheduler-policy is {policy!r}; allowed is {' or '.join(NODE_POLICIES)}"
    assert str(refused.value) == expected


@pytest.mark.parametrize("policy", ["BINPACK", "best", "binpack,best", "topology"])
def test_other_gpu_policies_are_refused_by_name(policy: str) -> None:
    with pytest.raises(BadInput) as refused:
        annotated(gpu_scheduler_policy=policy)
    expected = f"annotation hami.io/gpu-scheduler-policy is {policy!r}; allowed is {' or '.join(GPU_POLICIES)}"
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    ("written", "policy", "idle"),
    [
        ("topology-aware", "topology-aware", False),
        ("numa, binpack", "numa,binpack", False),
        ("mutex", "mutex", True),
        ("binpack,mutex,topology-aware", "binpack,mutex,topology-aware", True),
    ],
)
def test_gpu_policies_can_be_a_chain(written: str, policy: str, idle: bool) -> None:
    for request in (annotated(gpu_scheduler_policy=written), annotated(f"hami: {{gpuSchedulerPolicy: '{written}'}}")):
        assert (request.gpu_policy.replace(" ", ""), request.wishes.idle) == (policy, idle)


def test_volcanos_names_mean_the_same() -> None:
    def request(config: str = "", **annotations: str) -> PodRequest:
        named = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
        found = parse(pod(container(gpu=1, gpumem=1), annotations=named), load(config, "c"))
        assert found is not None
        return found

    policy = {"deviceshare.SchedulePolicy": "spread"}
    both = request(**policy)
    assert (both.node_policy, both.gpu_policy) == ("spread", "spread")
    common = request("deviceshare.SchedulePolicy: binpack")
    assert (common.node_policy, common.gpu_policy) == ("binpack", "binpack")
    assert request("deviceshare.SchedulePolicy: binpack", **policy).gpu_policy == "spread"
    with pytest.raises(BadInput, match=r"deviceshare.SchedulePolicy is 'pack'; allowed is binpack or spread"):
        request(**{"deviceshare.SchedulePolicy": "pack"})
    with pytest.raises(BadInput, match=r"hami.gpuSchedulerPolicy is 'spread' and deviceshare.SchedulePolicy"):
        load("{deviceshare.SchedulePolicy: binpack, hami: {gpuSchedulerPolicy: spread}}", "c")
    wishes = {"volcano.sh/vgpu-use-gpuuuid": "GPU-a", "volcano.sh/vgpu-nouse-gpuuuid": "GPU-b"}
    assert request(**wishes).wishes == Wishes(uuids=("GPU-a",), not_uuids=("GPU-b",))
    assert request(**wishes, **{"nvidia.com/use-gpuuuid": "GPU-a"}).wishes.uuids == ("GPU-a",)
    with pytest.raises(BadInput, match="name different GPUs"):
        request(**wishes, **{"nvidia.com/use-gpuuuid": "GPU-c"})


@pytest.mark.parametrize(
    ("mode", "modes"),
    [
        ("", ()),
        (" hami-core ", (Mode.QUOTA,)),
        ("mig", (Mode.MIG,)),
        ("hami-core,mig", (Mode.MIG, Mode.QUOTA)),
        ("mig, hami-core", (Mode.MIG, Mode.QUOTA)),
        ("mps,mig", (Mode.MIG,)),
    ],
)
def test_the_modes_that_a_pod_names_are_those_it_accepts(mode: str, modes: tuple[Mode, ...]) -> None:
    assert annotated(vgpu_mode=mode).wishes == Wishes(modes=modes)
    volcanos = parse(pod(container(gpu=1, gpumem=1), annotations={"volcano.sh/vgpu-mode": mode}), DEFAULT)
    assert volcanos is not None and volcanos.wishes == Wishes(modes=modes)


@pytest.mark.parametrize(
    ("mode", "named"), [("mps", "mps"), ("hami", "'hami'"), ("mig,time-slicing", "'time-slicing'")]
)
def test_other_modes_are_refused_by_name(mode: str, named: str) -> None:
    with pytest.raises(BadInput, match=rf"vgpu-mode.*{named}.*allowed is hami-core or mig"):
        annotated(vgpu_mode=mode)


def test_the_two_keys_of_the_mode_have_to_agree() -> None:
    both = {"nvidia.com/vgpu-mode": "mig", "volcano.sh/vgpu-mode": "hami-core"}
    with pytest.raises(BadInput, match="name different modes; keep one of them"):
        parse(pod(container(gpu=1), annotations=both), DEFAULT)


@pytest.mark.parametrize("key", ["use_gpu_type", "use_gpu_uuid", "nouse_gpu_uuid", "use_gpuuid"])
def test_a_misspelt_wish_is_refused_with_the_nearest(key: str) -> None:
    with pytest.raises(BadInput, match=r"unknown annotation nvidia\.com/.*; did you mean nvidia\.com/.*use-gpu.*\?"):
        annotated(**{key: "x"})


def test_choices_that_cannot_be_honoured_are_refused() -> None:
    with pytest.raises(BadInput, match=r"numa-bind is 'yes'; allowed is true or false"):
        annotated(numa_bind="yes")
    with pytest.raises(BadInput, match=r"device-scoring-weights.* not offered"):
        annotated(device_scoring_weights="slot=1,core=1,memory=3")


@pytest.mark.parametrize(
    ("written", "bound"), [("true", True), ("T", True), ("1", True), ("false", False), ("", False)]
)
def test_numa_bind(written: str, bound: bool) -> None:
    assert annotated(numa_bind=written).numa_bind is bound


def test_annotations_of_others_and_of_hamis_own_records_are_left_alone() -> None:
    noted = {"hami.io/vgpu-node": "n", "nvidia.com/other": "x", "example.com/use-gputype": "x"}
    assert parse(pod(container(gpu=1), annotations=noted), DEFAULT) is not None


def test_a_pod_without_a_gpu_may_carry_any_annotation() -> None:
    assert parse(pod(container(), annotations={"nvidia.com/vgpu-mode": "nonsense"}), DEFAULT) is None
