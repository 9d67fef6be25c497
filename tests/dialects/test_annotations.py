import pytest

from lamina.configuration import DEFAULT, load
from lamina.core.gpus import Mode
from lamina.core.policies import GPU_POLICIES, NODE_POLICIES
from lamina.core.requests import GpuSelector, PodRequest
from lamina.dialects import parse
from lamina.dialects.choices import list_options
from lamina.errors import BadInput
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


def test_lists_of_gpus_are_comma_separated_and_empty_ones_select_all() -> None:
    request = annotated(
        use_gputype="A100, V100", nouse_gputype="1080", use_gpuuuid=" GPU-a ,GPU-b,", nouse_gpuuuid=" , "
    )
    assert request.selector == GpuSelector(
        types=("A100", "V100"), not_types=("1080",), uuids=("GPU-a", "GPU-b"), not_uuids=()
    )
    assert annotated().selector == GpuSelector()


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
    expected = f'annotation hami.io/node-scheduler-policy must be {list_options(NODE_POLICIES)}, got "{policy}"'
    assert str(refused.value) == expected


@pytest.mark.parametrize("policy", ["BINPACK", "best", "binpack,best", "topology"])
def test_other_gpu_policies_are_refused_by_name(policy: str) -> None:
    with pytest.raises(BadInput) as refused:
        annotated(gpu_scheduler_policy=policy)
    expected = f'annotation hami.io/gpu-scheduler-policy must be {list_options(GPU_POLICIES)}, got "{policy}"'
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
        assert (request.gpu_policy.replace(" ", ""), request.selector.idle) == (policy, idle)


def test_volcanos_annotations_mean_the_same() -> None:
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
    with pytest.raises(BadInput, match=r'deviceshare.SchedulePolicy must be binpack, spread, .*, got "pack"'):
        request(**{"deviceshare.SchedulePolicy": "pack"})
    with pytest.raises(
        BadInput,
        match=r"hami.gpuSchedulerPolicy and deviceshare.SchedulePolicy set the same, but to 'spread' and 'binpack'",
    ):
        load("{deviceshare.SchedulePolicy: binpack, hami: {gpuSchedulerPolicy: spread}}", "c")
    selector = {"volcano.sh/vgpu-use-gpuuuid": "GPU-a", "volcano.sh/vgpu-nouse-gpuuuid": "GPU-b"}
    assert request(**selector).selector == GpuSelector(uuids=("GPU-a",), not_uuids=("GPU-b",))
    assert request(**selector, **{"nvidia.com/use-gpuuuid": "GPU-a"}).selector.uuids == ("GPU-a",)
    with pytest.raises(BadInput, match="must name the same GPUs; keep one of them"):
        request(**selector, **{"nvidia.com/use-gpuuuid": "GPU-c"})


@pytest.mark.parametrize(
    ("mode", "modes"),
    [
        ("", ()),
        (" hami-core ", (Mode.QUOTA,)),
        ("mig", (Mode.MIG,)),
        ("hami-core,mig", (Mode.MIG, Mode.QUOTA)),
        ("mig, hami-core", (Mode.MIG, Mode.QUOTA)),
        ("mps", (Mode.MPS,)),
        ("mps,mig", (Mode.MIG, Mode.MPS)),
    ],
)
def test_a_pod_accepts_the_modes_that_it_names(mode: str, modes: tuple[Mode, ...]) -> None:
    assert annotated(vgpu_mode=mode).selector == GpuSelector(modes=modes)
    volcanos = parse(pod(container(gpu=1, gpumem=1), annotations={"volcano.sh/vgpu-mode": mode}), DEFAULT)
    assert volcanos is not None and volcanos.selector == GpuSelector(modes=modes)


@pytest.mark.parametrize("mode", ["hami", "mig,time-slicing"])
def test_other_modes_are_refused_by_name(mode: str) -> None:
    with pytest.raises(BadInput, match=rf'vgpu-mode must be hami-core, mig or mps, got "{mode}"$'):
        annotated(vgpu_mode=mode)


def test_both_annotations_of_the_mode_must_agree() -> None:
    both = {"nvidia.com/vgpu-mode": "mig", "volcano.sh/vgpu-mode": "hami-core"}
    with pytest.raises(BadInput, match="must name the same modes; keep one of them"):
        parse(pod(container(gpu=1), annotations=both), DEFAULT)


@pytest.mark.parametrize("key", ["use_gpu_type", "use_gpu_uuid", "nouse_gpu_uuid", "use_gpuuid"])
def test_a_misspelled_annotation_is_refused_with_the_nearest(key: str) -> None:
    with pytest.raises(BadInput, match=r"unknown annotation nvidia\.com/.*; did you mean nvidia\.com/.*use-gpu.*\?"):
        annotated(**{key: "x"})


def test_choices_that_cannot_be_honored_are_refused() -> None:
    with pytest.raises(BadInput, match=r'numa-bind must be true or false, got "yes"'):
        annotated(numa_bind="yes")
    with pytest.raises(BadInput, match=r"device-scoring-weights is not supported; remove it"):
        annotated(device_scoring_weights="slot=1,core=1,memory=3")


@pytest.mark.parametrize(
    ("written", "bound"), [("true", True), ("T", True), ("1", True), ("false", False), ("", False)]
)
def test_numa_bind(written: str, bound: bool) -> None:
    assert annotated(numa_bind=written).numa_bind is bound


def test_unrelated_annotations_and_those_that_hami_writes_itself_are_ignored() -> None:
    noted = {"hami.io/vgpu-node": "n", "nvidia.com/other": "x", "example.com/use-gputype": "x"}
    assert parse(pod(container(gpu=1), annotations=noted), DEFAULT) is not None


def test_a_pod_without_a_gpu_may_carry_any_annotation() -> None:
    assert parse(pod(container(), annotations={"nvidia.com/vgpu-mode": "nonsense"}), DEFAULT) is None
