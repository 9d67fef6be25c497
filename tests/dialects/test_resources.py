"""Which dialect or other system a resource name belongs to, and which names are misspelled."""

import pytest

from lamina.configuration import DEFAULT, load
from lamina.dialects import parse, resource_names
from lamina.dialects.registry import name_index
from lamina.errors import BadInput
from tests.dialects.pods import asking, container, pod

NAMES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
)


def test_kube_scheduler_counts_only_the_count() -> None:
    names = name_index(DEFAULT).names["hami"]
    assert names.all == NAMES
    assert names.ignored_by_scheduler == NAMES[1:]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("nvidia.com/gpu-mem", "nvidia.com/gpumem"),
        ("nvidia.com/gpumemory", "nvidia.com/gpumem"),
        ("nvidia.com/gpucore", "nvidia.com/gpucores"),
        ("nvidia.com/gpu-cores", "nvidia.com/gpucores"),
        ("nvidia.com/gpumem-percent", "nvidia.com/gpumem-percentage"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/prioritiy", "nvidia.com/priority"),
    ],
)
@pytest.mark.parametrize("others", [{}, {"gpu": "1"}])
def test_a_misspelled_name_is_refused_with_the_nearest(wrong: str, meant: str, others: dict[str, str]) -> None:
    with pytest.raises(BadInput) as refused:
        parse(asking(**{wrong: 1}, **others), DEFAULT)
    assert str(refused.value) == f'container "main": unknown resource {wrong}; did you mean {meant}?'


def test_an_unknown_name_is_refused_with_all_known_ones() -> None:
    with pytest.raises(BadInput, match=r"unknown resource nvidia\.com/zzz; known resources are nvidia\.com/gpu, "):
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
def test_resources_of_other_systems_are_ignored(other: str) -> None:
    assert parse(asking(**{other if "/" in other else f"x/{other}": 1}), DEFAULT) is None
    assert parse(asking(gpu=1, **{other if "/" in other else f"x/{other}": 1}), DEFAULT) is not None


def test_the_list_of_other_systems_is_configurable() -> None:
    wider = load("dialects: {otherResources: ['nvidia.com/mig-*', 'nvidia.com/zzz*']}", "c")
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


@pytest.mark.parametrize(("dialect", "name"), [*SERVED_BESIDE, *FOREIGN])
def test_a_pod_that_mixes_dialects_is_refused(dialect: str, name: str) -> None:
    manifest = pod(container("a", gpu=1), container("b", **{name: 1}))
    with pytest.raises(
        BadInput, match=f'container "b": {name} of the {dialect} dialect cannot be combined with nvidia.com/gpu'
    ):
        parse(manifest, DEFAULT)


def test_two_dialects_with_the_same_prefix_cannot_be_mixed() -> None:
    manifest = asking(**{"volcano.sh/vgpu-number": 1, "volcano.sh/gpu-mem.128Mi": 8})
    with pytest.raises(
        BadInput,
        match=r"volcano.sh/vgpu-number of the volcano dialect cannot be combined with volcano.sh/gpu-mem.128Mi",
    ):
        parse(manifest, DEFAULT)


@pytest.mark.parametrize(("dialect", "name"), FOREIGN)
def test_an_unsupported_dialect_is_refused_with_those_that_are_supported(dialect: str, name: str) -> None:
    with pytest.raises(
        BadInput,
        match=f"{name} of the {dialect} dialect is not supported; use nvidia.com/gpu, volcano.sh/vgpu-number",
    ):
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
def test_misspelled_names_of_other_prefixes_are_refused_with_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"unknown resource {wrong}; did you mean {meant}"):
        parse(asking(**{wrong: 1}), DEFAULT)


@pytest.mark.parametrize("other", ["volcano.sh/queue-depth", "volcano.sh/npu", "volcano.sh/task-index"])
def test_other_names_of_volcano_are_ignored(other: str) -> None:
    assert parse(asking(**{other: 1}), DEFAULT) is None


def test_a_dialect_is_counted_by_its_ticket_alone() -> None:
    tickets = {dialect: names.ticket for dialect, names in name_index(DEFAULT).names.items() if names.ticket}
    known = {"hami": "nvidia.com/gpu", "volcano": "volcano.sh/vgpu-number", "cce": "volcano.sh/gpu-mem.128Mi"}
    assert tickets.items() >= known.items()
    assert len(set(tickets.values())) == len(tickets), "kubelet has one plugin for each ticket"
    for names in resource_names(DEFAULT):
        assert set(names.all) - set(names.ignored_by_scheduler) == {names.ticket}


RENAMED = load("resourceName: example.com/vgpu\nresourceMem: example.com/vmem", "c")


def test_a_native_gpu_is_left_to_nvidias_plugin_but_not_mixed_with_configured_names() -> None:
    assert parse(asking(gpu=1), RENAMED) is None
    with pytest.raises(BadInput, match=r"gpu of the nvidia dialect cannot be combined with example.com/vgpu"):
        parse(asking(gpu=1, **{"example.com/vgpu": 1}), RENAMED)


def test_a_default_name_that_is_configured_differently_is_refused() -> None:
    with pytest.raises(BadInput, match=r"unknown resource nvidia.com/gpumem"):
        parse(asking(gpumem=100, **{"example.com/vgpu": 1}), RENAMED)
