"""The policy as a scheduler uses it: learning, remembering between decisions, and small cases a person can check."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.placement.packing import REFUSED, Ask, Cluster, Packer, RequestCounts, bits
from lamina.placement.packing.mix import WINDOW
from lamina.placement.packing.ranking import best_fit
from tests.placement.packing_clusters import asks, clusters, library, mixes


@pytest.fixture(scope="module")
def core() -> ctypes.CDLL:
    return library()


def cluster_of(*nodes: list[int], cpu: int = 96_000, full: int = 1000) -> Cluster:
    """Nodes whose GPUs have these thousandths free, of one kind."""
    gpus = max(len(node) for node in nodes)
    free = np.array([[*node, *[0] * (gpus - len(node))] for node in nodes], np.int32)
    there = np.array([[True] * len(node) + [False] * (gpus - len(node)) for node in nodes])
    return Cluster(
        cpu=np.full(len(nodes), cpu, np.int64),
        memory=np.full(len(nodes), 512_000, np.int64),
        kind=np.where(there, 0, -1).astype(np.int32),
        gpu_memory=free,
        gpu_cores=free.copy(),
        slots=np.where(there, 10, 0).astype(np.int32),
        full_memory=np.array([full], np.int32),
        full_cores=np.array([full], np.int32),
    )


def share(milli: int, gpus: int = 1, cpu: int = 1000) -> Ask:
    return Ask(cpu, 1024, gpus, (milli,), milli)


def counts(**usual: int) -> RequestCounts:
    """Shares by name (`s470=3`: three pods of 470 thousandths; `w2=1`: one of two whole GPUs), times a hundred."""
    found = RequestCounts()
    for name, n in usual.items():
        ask = share(int(name[1:])) if name[0] == "s" else share(1000, int(name[1:]))
        for _ in range(100 * n):
            found.add(ask)
    return found


@settings(max_examples=50, deadline=None)
@given(cluster=clusters(), usual=mixes(), data=st.data())
def test_cached_levels_are_those_computed_again(
    core: ctypes.CDLL, cluster: Cluster, usual: dict[Ask, int], data: st.DataObject
) -> None:
    known = RequestCounts()
    for ask, n in usual.items():
        for _ in range(n):
            known.add(ask)
    packer = Packer(core, cluster, known)
    held: list[tuple[int, int, Ask]] = []
    for ask in data.draw(st.lists(st.sampled_from(list(usual)) | asks(), max_size=12)):
        levels, gpus = packer.levels(ask)
        fresh, fresh_gpus = Packer(core, cluster, known).levels(ask)
        assert (levels == fresh).all() and (gpus == fresh_gpus).all()
        found = packer.best(ask)
        if found is not None:
            cluster.take(*found, ask)
            held.append((*found, ask))
            packer.changed(found[0])
        elif held:
            row, freed, gone = held.pop(0)
            cluster.release(row, freed, gone)
            packer.changed(row)


def test_without_history_it_is_best_fit(core: ctypes.CDLL) -> None:
    cluster = cluster_of([1000, 1000], [1000, 600], [500, 600])
    packer = Packer(core, cluster)
    packer.arrived(Ask(1000, 1024, 0, (0,), 0))
    assert packer.best(share(400)) == (2, 0b01)
    assert [list(found) for found in packer.levels(share(400))] == [list(f) for f in best_fit(cluster, share(400))]
    assert packer.best(share(1001)) is None


def test_what_it_has_learned_depends_on_the_pods_alone(core: ctypes.CDLL) -> None:
    """A scheduler that starts again with the same pods decides as the one before."""
    cluster = cluster_of([1000, 1000], [1000, 600], [500, 600], [1000])
    learning, known = Packer(core, cluster), RequestCounts()
    for milli in (500, 250, 1000, 500, 600, 400):
        learning.arrived(share(milli))
        known.add(share(milli))
    again = Packer(core, cluster, known)
    for milli in (250, 400, 500, 1000):
        assert again.best(share(milli)) == learning.best(share(milli))


def test_best_fit_takes_the_gpus_with_least_left() -> None:
    cluster = cluster_of([1000, 400, 700, 300], [1000, 1000, 1000])
    levels, gpus = best_fit(cluster, share(350, gpus=2))
    assert levels[0] > levels[1] and int(gpus[0]) == 0b0110
    assert best_fit(cluster, share(1000, gpus=4))[0].tolist() == [-np.inf, -np.inf]


def test_a_share_goes_where_its_usual_partner_leaves_nothing(core: ctypes.CDLL) -> None:
    packer = Packer(core, cluster_of([1000], [700], [530]), counts(s470=5, s530=5))
    assert packer.best(share(530)) == (2, 1)
    assert packer.best(share(470)) == (0, 1), "what it leaves of an idle GPU is of use; 60 or 230 are not"


def test_shares_leave_whole_gpus_to_those_who_need_several(core: ctypes.CDLL) -> None:
    packer = Packer(core, cluster_of([1000, 1000], [1000, 500]), counts(w2=5, w1=5, s500=5))
    assert packer.best(share(500)) == (1, 0b10)
    assert packer.best(share(1000)) == (1, 0b01)


def test_a_pod_for_several_gpus_leaves_space_for_the_next_of_its_kind(core: ctypes.CDLL) -> None:
    """Free 4, 4 and 8 GiB, two pods that want 4 GiB of two GPUs each: only 0 + 2, then 1 + 2 places both."""
    cluster = cluster_of([250, 250, 500])
    pair = Ask(1000, 1024, 2, (250,), 0)
    known = RequestCounts()
    known.add(pair)
    packer = Packer(core, cluster, known)
    for _ in range(2):
        found = packer.best(pair)
        assert found is not None and 2 in list(bits(found[1]))
        cluster.take(*found, pair)
        packer.changed(found[0])
    assert cluster.gpu_memory.tolist() == [[0, 0, 0]]


def test_a_pod_without_wishes_leaves_the_kind_that_others_depend_on(core: ctypes.CDLL) -> None:
    cluster = cluster_of([1000], [1000])
    two = Cluster(
        **{**vars(cluster), "kind": np.array([[0], [1]], np.int32)}
        | {"full_memory": np.array([1000, 1000], np.int32), "full_cores": np.array([1000, 1000], np.int32)}
    )
    anywhere, only_first = Ask(1000, 1024, 1, (1000, 1000), 1000), Ask(1000, 1024, 1, (1000, REFUSED), 1000)
    known = RequestCounts()
    for ask in (anywhere, only_first):
        known.add(ask)
    packer = Packer(core, two, known)
    assert packer.best(anywhere) == (1, 1)
    assert packer.best(only_first) == (0, 1)


def test_where_no_cpu_is_counted_cpu_plays_no_part(core: ctypes.CDLL) -> None:
    usual = [Ask(0, 0, 1, (milli,), milli) for milli in (250, 500, 1000)]
    known = RequestCounts()
    for ask in usual:
        known.add(ask)
    free = ([1000, 500], [750, 1000], [500, 250])
    few, many = (Packer(core, cluster_of(*free, cpu=cpu), known) for cpu in (1000, 10**6))
    for ask in usual:
        assert few.levels(ask)[0].tolist() == many.levels(ask)[0].tolist()


def test_old_pods_fade() -> None:
    known = RequestCounts()
    for _ in range(WINDOW):
        known.add(share(470))
    for _ in range(WINDOW):
        known.add(share(530))
    assert known.counts[share(530)] > 2 * known.counts[share(470)]
    assert known.arrived == 2 * WINDOW and sum(known.counts.values()) <= WINDOW
