"""What a pod holds of a GPU, against an oracle that plays Kubernetes' order of starting containers."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import NOTHING, Taken, beyond, taken_by

GPUS = ("GPU-a", "GPU-b")


def grant(name: str, memory: int, cores: int = 0, *, kind: str = "main", gpu: str = "GPU-a") -> ContainerGrant:
    share = Share(gpu=gpu, memory_mib=memory, cores=cores)
    return ContainerGrant(name=name, shares=(share,), init=kind != "main", sidecar=kind == "sidecar")


def test_containers_that_run_together_add_up() -> None:
    assert taken_by([grant("a", 1000, 10), grant("b", 2000, 20)]) == {"GPU-a": Taken(2, 3000, 30)}


def test_init_containers_follow_one_another() -> None:
    held = taken_by([grant("a", 1000, 10, kind="init"), grant("b", 500, 90, kind="init"), grant("c", 700, 5)])
    assert held == {"GPU-a": Taken(1, 1000, 90)}


def test_a_sidecar_runs_with_later_init_containers_and_with_all_others() -> None:
    early = grant("early", 5000, kind="init")
    sidecar = grant("sidecar", 1000, kind="sidecar")
    late = grant("late", 3000, kind="init")
    main = grant("main", 2000)
    assert taken_by([early, sidecar, late, main]) == {"GPU-a": Taken(2, 5000, without_cores=True)}
    assert taken_by([sidecar, early, late, main]) == {"GPU-a": Taken(2, 6000, without_cores=True)}


def test_an_exclusive_share_holds_the_gpu_whole() -> None:
    exclusive = ContainerGrant(name="c", shares=(Share(gpu="GPU-a", memory_mib=1, exclusive=True),))
    whole = ContainerGrant(name="c", shares=(Share(gpu="GPU-a", memory_mib=1, mode=Mode.WHOLE),))
    assert taken_by([exclusive])["GPU-a"].whole
    assert taken_by([whole])["GPU-a"].whole
    assert not taken_by([grant("c", 1)])["GPU-a"].whole


def test_a_pod_without_containers_takes_nothing() -> None:
    assert taken_by([]) == {}


grants = st.builds(
    grant,
    st.just("c"),
    st.integers(1, 100),
    st.integers(0, 100),
    kind=st.sampled_from(["init", "sidecar", "main"]),
    gpu=st.sampled_from(GPUS),
)


def played(containers: list[ContainerGrant]) -> dict[str, Taken]:
    """Start the containers as kubelet does, and note the most that is held of each GPU at any moment."""
    running: list[ContainerGrant] = []
    peak = dict.fromkeys(GPUS, NOTHING)

    def look() -> None:
        for gpu in GPUS:
            shares = [share for container in running for share in container.shares if share.gpu == gpu]
            memory, cores = sum(share.memory_mib for share in shares), sum(share.cores for share in shares)
            now = Taken(len(shares), memory, cores, without_cores=any(share.cores == 0 for share in shares))
            peak[gpu] = peak[gpu].at_least(now)

    for container in [c for c in containers if c.init]:
        running.append(container)
        look()
        if not container.sidecar:
            running.remove(container)
    running += [c for c in containers if not c.init]
    look()
    return {gpu: taken for gpu, taken in peak.items() if taken != NOTHING}


@given(st.lists(grants, max_size=6))
def test_the_ledger_counts_the_peak_of_the_played_pod(containers: list[ContainerGrant]) -> None:
    containers.sort(key=lambda container: not container.init)
    assert taken_by(containers) == played(containers)


def test_what_others_give_up_is_given_once() -> None:
    theirs = {"a": Taken(2, 6000, 30)}
    first = beyond({"a": Taken(1, 4000, 40), "b": Taken(1, 100)}, theirs)
    assert first == {"a": Taken(0, 0, 10), "b": Taken(1, 100)} and theirs["a"] == Taken(1, 2000, 0)
    assert beyond({"a": Taken(1, 3000)}, theirs) == {"a": Taken(0, 1000)}


def test_a_whole_gpu_is_whole_when_others_have_given_up_everything() -> None:
    whole = Taken(1, 15360, 100, whole=True)
    assert beyond({"a": whole}, {"a": Taken(1, 5000, 50)}) == {"a": Taken(0, 10360, 50)}
    assert beyond({"a": whole}, {}) == {"a": whole}
