"""Hypothesis strategies for GPUs, pods and amounts that are taken of a GPU."""

from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest, SharingRules

MODELS = ("Tesla V100", "A100")
gpu_lists = st.lists(
    st.builds(
        dict,
        model=st.sampled_from(MODELS),
        memory_mib=st.integers(50, 100),
        scaling=st.sampled_from([1, 2]),
        cores_capacity=st.sampled_from([100, 100, 200]),
        slots=st.integers(1, 4),
        healthy=st.sampled_from([True, True, True, False]),
    ),
    max_size=4,
).map(
    lambda kinds: tuple(
        Gpu(uuid=f"GPU-{index}", index=index, capacity_mib=kind["memory_mib"] * kind.pop("scaling"), **kind)
        for index, kind in enumerate(kinds)
    )
)
SHARINGS = [SharingRules(), SharingRules(), SharingRules(), SharingRules(most=2, one_isolation=True, alone_below_mib=8)]


@st.composite
def containers(draw: st.DrawFn, name: str = "c", *, shared: bool = False) -> ContainerRequest:
    """Any container; a `shared` one neither wants a GPU alone nor takes whatever time is left."""
    kind = draw(st.sampled_from(["main", "main", "main", "init", "sidecar"]))
    count = draw(st.integers(1, 3))
    rest = {"container": name, "init": kind != "main", "sidecar": kind == "sidecar", "count": count}
    if not shared:
        rest["sharing"] = draw(st.sampled_from(SHARINGS))
    form = draw(st.sampled_from(["amount", "amount", "percent", *([] if shared else ["whole"])]))
    cores = draw(st.sampled_from([10, 30, 60] if shared else [0, 0, 10, 30, 60, 100]))
    if form == "whole":
        return ContainerRequest(memory_percent=100, cores=100, exclusive=True, **rest)  # type: ignore[arg-type]
    if form == "percent":
        return ContainerRequest(memory_percent=draw(st.integers(1, 100)), cores=cores, **rest)  # type: ignore[arg-type]
    return ContainerRequest(memory_mib=draw(st.integers(1, 110)), cores=cores, **rest)  # type: ignore[arg-type]


@st.composite
def pods(draw: st.DrawFn, *, shared: bool = False) -> PodRequest:
    found = [draw(containers(f"c{n}", shared=shared)) for n in range(draw(st.integers(1, 3)))]
    found.sort(key=lambda container: not container.init)
    choices = (
        [GpuSelector()]
        if shared
        else [GpuSelector(), GpuSelector(), GpuSelector(types=("v100",)), GpuSelector(not_uuids=("GPU-0",))]
    )
    selector = draw(st.sampled_from(choices))
    policy = draw(st.sampled_from(["binpack", "spread", ""]))
    return PodRequest(dialect="hami", containers=tuple(found), selector=selector, gpu_policy=policy, node_policy=policy)


def rooms(memories: st.SearchStrategy[int], cores: st.SearchStrategy[int]) -> st.SearchStrategy[QuotaRoom | None]:
    """What quotas leave, on each resource or on none."""
    memory = st.none() | st.builds(QuotaLimit, st.just("q"), st.just("gpumem"), memories, st.sampled_from([0, 0, 20]))
    compute = st.none() | st.builds(QuotaLimit, st.just("r"), st.just("gpucores"), cores, st.sampled_from([0, 0, 20]))
    return st.none() | st.builds(QuotaRoom, memory, compute)


takens = st.builds(
    Taken,
    st.integers(0, 3),
    st.integers(0, 80),
    st.sampled_from([0, 30, 60, 100]),
    st.sampled_from([False, False, False, False, True]),
    st.just(False),
    st.just(False),
    st.just(0),
    st.just(()),
    st.just(False),
)
