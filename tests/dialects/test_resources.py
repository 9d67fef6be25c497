"""Whose a resource name is: ours, a mistake, another vocabulary's, or another system's."""

import pytest

from lamina.dialects import hami, parse, vocabularies
from lamina.dialects.config import DEFAULT, load
from lamina.errors import BadInput
from tests.dialects.pods import asking, container, pod

NAMES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
)


def test_kube_scheduler_sees_the_count_alone() -> None:
    names = hami(DEFAULT)
    assert names.all == NAMES
    assert names.ignored_by_scheduler == NAMES[1:]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("nvidia.com/gpu-mem", "nvidia.com/gpumem"),
        ("nvidia.com/gpumemory", "nvidia.com/gpumem"),
        ("nvidia.com/cores", "nvidia.com/gpucores"),
        ("nvidia.com/gpu-cores", "nvidia.com/gpucores"),
        ("nvidia.com/gpumem-percent", "nvidia.com/gpumem-percentage"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/prioritiy", "nvidia.com/priority"),
    ],
)
@pytest.mark.parametrize("beside", [{}, {"gpu": "1"}])
def test_a_name_like_ours_is_refused_with_the_nearest(wrong: str, meant: str, beside: dict[str, str]) -> None:
    with pytest.raises(BadInput) as refused:
        parse(asking(**{wrong: 1}, **beside), DEFAULT)
    assert str(refused.value) == f"unknown resource {wrong}; did you mean {meant}?"


def test_a_name_near_to_nothing_is_refused_with_all_known_ones() -> None:
    with pytest.raises(BadInput, match=r"unknown resource nvidia\.com/zzz; known are nvidia\.com/gpu, "):
        parse(asking(**{"nvidia.com/zzz": 1}), DEFAULT)


@pytest.mark.parametrize(
    "other",
    [
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/mig-3g.20gb",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb.shared",
        "nvidia.com/hostdev",
        "nvidia.com/rdma_shared_device_a",
        "nvidia.com/GRID_T4-2Q",
        "nvidia.com/TU104GL_Tesla_T4",
        "amd.com/gpu",
        "rdma/hca",
        "hugepages-2Mi",
        "ephemeral-storage",
        "example.com/gpumem",
    ],
)
def test_resources_of_other_systems_are_left_alone(other: str) -> None:
    assert parse(asking(**{other if "/" in other else f"x/{other}": 1}), DEFAULT) is None
    assert parse(asking(gpu=1, **{other if "/" in other else f"x/{other}": 1}), DEFAULT) is not None


def test_the_list_of_other_systems_is_configurable() -> None:
    wider = load("otherResources: ['nvidia.com/mig-*', 'nvidia.com/zzz*']", "c")
    assert parse(asking(**{"nvidia.com/zzz-1": 1}), wider) is None
    with pytest.raises(BadInput, match=r"unknown resource nvidia.com/hostdev"):
        parse(asking(**{"nvidia.com/hostdev": 1}), wider)


SERVED_BESIDE = [
    ("volcano", "volcano.sh/vgpu-number"),
    ("volcano", "volcano.sh/vgpu-memory"),
    ("volcano", "volcano.sh/vgpu-memory-percentage"),
    ("volcano", "volcano.sh/vgpu-cores"),
    ("cce", "volcano.sh/gpu-mem.128Mi"),
    ("cce", "volcano.sh/gpu-core.percentage"),
]
FOREIGN = [
    ("volcano-gpushare", "volcano.sh/gpu-memory"),
    ("volcano-gpushare", "volcano.sh/gpu-number"),
    ("gpushare", "aliyun.com/gpu-mem"),
    ("gpushare", "aliyun.com/gpu-count"),
    ("gpu-manager", "tencent.com/vcuda-core"),
    ("gpu-manager", "tencent.com/vcuda-memory"),
]


@pytest.mark.parametrize(("vocabulary", "name"), [*SERVED_BESIDE, *FOREIGN])
def test_a_pod_that_mixes_vocabularies_is_refused(vocabulary: str, name: str) -> None:
    manifest = pod(container("a", gpu=1), container("b", **{name: 1}))
    with pytest.raises(BadInput, match=f"mixes nvidia.com/gpu with {name} of the {vocabulary} vocabulary"):
        parse(manifest, DEFAULT)


def test_the_two_vocabularies_of_one_prefix_are_not_mixed_either() -> None:
    manifest = asking(**{"volcano.sh/vgpu-number": 1, "volcano.sh/gpu-mem.128Mi": 8})
    with pytest.raises(BadInput, match=r"mixes volcano.sh/gpu-mem.128Mi with volcano.sh/vgpu-number of the volcano"):
        parse(manifest, DEFAULT)


@pytest.mark.parametrize(("vocabulary", "name"), FOREIGN)
def test_a_vocabulary_that_is_not_served_is_refused_with_those_that_are(vocabulary: str, name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} belongs to the {vocabulary} vocabulary, .* served here are hami"):
        parse(asking(**{name: 1}), DEFAULT)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("volcano.sh/vgpu-mem", "volcano.sh/vgpu-memory"),
        ("volcano.sh/vgpu-core", "volcano.sh/vgpu-cores"),
        ("volcano.sh/gpu-mem.256Mi", "volcano.sh/gpu-mem.128Mi"),
        ("volcano.sh/gpu-core.percent", "volcano.sh/gpu-core.percentage"),
    ],
)
def test_misspelt_names_of_other_prefixes_are_refused_with_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"unknown resource {wrong}; did you mean {meant}"):
        parse(asking(**{wrong: 1}), DEFAULT)


@pytest.mark.parametrize("other", ["volcano.sh/queue-depth", "volcano.sh/npu", "volcano.sh/task-index"])
def test_other_names_of_volcano_are_left_alone(other: str) -> None:
    assert parse(asking(**{other: 1}), DEFAULT) is None


def test_a_vocabulary_is_counted_by_its_ticket_alone() -> None:
    tickets = {vocabulary.dialect: vocabulary.ticket for vocabulary in vocabularies(DEFAULT)}
    assert tickets == {
        "hami": "nvidia.com/gpu",
        "volcano": "volcano.sh/vgpu-number",
        "cce": "volcano.sh/gpu-mem.128Mi",
    }
    for vocabulary in vocabularies(DEFAULT):
        assert set(vocabulary.all) - set(vocabulary.ignored_by_scheduler) == {vocabulary.ticket}


RENAMED = load("resourceName: example.com/vgpu\nresourceMem: example.com/vmem", "c")


def test_under_other_names_a_plain_gpu_is_left_to_its_own_plugin_but_not_mixed() -> None:
    assert parse(asking(gpu=1), RENAMED) is None
    with pytest.raises(BadInput, match=r"mixes example.com/vgpu with nvidia.com/gpu of the nvidia vocabulary"):
        parse(asking(gpu=1, **{"example.com/vgpu": 1}), RENAMED)


def test_a_limit_under_a_name_that_was_configured_away_is_never_ignored() -> None:
    with pytest.raises(BadInput, match=r"unknown resource nvidia.com/gpumem"):
        parse(asking(gpumem=100, **{"example.com/vgpu": 1}), RENAMED)
