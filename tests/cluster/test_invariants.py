"""Every violation is found: a cluster that agrees with itself, and one changed fact. No cluster is needed."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.state.holdings import Bound, Holding, Instance
from lamina.core.gpus import Gpu, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.core.quantities import MIB
from lamina.ports.kubelet.allocations import Holder
from tests.cluster.invariants import (
    Container,
    Finding,
    Folder,
    Observation,
    OnNode,
    Pod,
    Settling,
    disagreements,
    over_committed,
)

A, B, C, D = "GPU-a", "GPU-b", "GPU-c", "GPU-d"
Change = Callable[[Observation], Observation]


def grant(uid: str, *shares: Share, node: str = "n", init: tuple[Share, ...] = ()) -> Grant:
    containers = [ContainerGrant(name="main", shares=shares)]
    if init:
        containers.insert(0, ContainerGrant(name="first", shares=init, init=True))
    return Grant(pod=f"pod-{uid}", pod_uid=uid, node=node, dialect="hami", containers=tuple(containers))


def share(gpu: str = A, memory: int = 400, **more: Any) -> Share:
    return Share(gpu=gpu, memory_mib=memory, **more)


def bound(uid: str, gpu: str = A, mode: Mode = Mode.QUOTA, *instances: Instance) -> Bound:
    who = {"namespace": "d", "pod": f"pod-{uid}", "pod_uid": uid, "container": "main"}
    parts = [MigInstance(profile=each.profile, start=each.start) for each in instances] or [None]
    shares = tuple(Share(gpu=gpu, memory_mib=400, mode=mode, mig=part) for part in parts)
    return Bound(**who, grant=ContainerGrant(name="main", shares=shares))


HOLDERS = tuple(Holder("d", f"pod-{uid}", "main", frozenset({f"ticket-{uid}"})) for uid in "12")
ALLOCATIONS = tuple(Holding(name=f"name-{u}", tickets=frozenset({f"ticket-{u}"}), bound=bound(u)) for u in "12")
FOLDER = Folder({A: 400 * MIB}, {A: 0}, {A: 100 * MIB})
NODE = OnNode(
    holders=HOLDERS,
    allocations=(*ALLOCATIONS, Holding(name="unclaimed", tickets=frozenset({"ticket-9"}))),
    specs={"name-1": (A,), "name-2": (A,)},
    folders={"1_main": FOLDER, "2_main": FOLDER},
    containers=tuple(Container(uid, f"container-{uid}", (A,), f"{uid}_main", {A: 100}) for uid in "12"),
)
GPUS = tuple(
    Gpu(uuid=uuid, index=i, model="m", memory_mib=1000, capacity_mib=1000, slots=2, mig_card="A100-40GB")
    for i, uuid in enumerate((A, B))
)
SEEN = Observation(
    grants=(grant("1", share()), grant("2", share()), grant("over", share(memory=900))),
    pods={**{uid: Pod("d", f"pod-{uid}", "n") for uid in "12"}, "over": Pod("d", "pod-over", "n", over=True)},
    gpus={"n": GPUS},
    ledger={A: (2, 800, 0), B: (0, 0, 0)},
    nodes={"n": NODE},
)


def test_a_cluster_that_agrees_is_left_alone() -> None:
    assert (over_committed(SEEN), disagreements(SEEN)) == ([], [])


def grants(*those: Grant) -> Observation:
    """Living pods with these grants, on a node where nothing else is known."""
    pods = {each.pod_uid: Pod("d", each.pod, each.node) for each in those}
    return Observation(those, pods, {"n": GPUS}, None, {})


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (grants(grant("1", share(memory=600)), grant("2", share(memory=600))), "1200 MiB are granted, 1000 may be"),
        (grants(grant("1", share(memory=9), init=(share(memory=1001),))), "1001 MiB"),
        (grants(grant("1", share(cores=60)), grant("2", share(cores=41))), "101 percent of time"),
        (grants(*(grant(uid, share(memory=1)) for uid in "123")), "3 shares are granted, 2 may be"),
        (grants(grant("1", share(exclusive=True)), grant("2", share())), "2 shares are granted, 1 may be"),
        (grants(grant("1", share(exclusive=True), share())), "2 shares are granted, 1 may be"),
        (grants(grant("1", share(memory=1), init=(share(exclusive=True),)), grant("2", share(memory=1))),
         "2 shares are granted, 1 may be"),
        (grants(grant("1", share(most_sharers=1)), grant("2", share())), "2 shares are granted, 1 may be"),
        (grants(grant("1", share(mode=Mode.WHOLE)), grant("2", share())), "2 shares are granted, 1 may be"),
        (grants(grant("1", share(), init=(share(mode=Mode.WHOLE),)), grant("2", share())), "2 shares are granted"),
        (
            grants(grant("1", share()), grant("2", share(mode=Mode.MIG, mig=MigInstance(profile="p", start=0)))),
            "modes mig and quota at once",
        ),
        (
            grants(
                *(grant(u, share(mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=0))) for u in "12"),
            ),
            "2 pods have",
        ),
        (
            grants(*(
                grant(uid, share(mode=Mode.MIG, mig=MigInstance(profile=profile, start=start)))
                for uid, profile, start in (("1", "1g.5gb", 1), ("2", "3g.20gb", 0))
            )),
            "1g.5gb cannot begin at 1",
        ),
        (SEEN._replace(nodes={"n": NODE._replace(containers=(Container("1", "c", (A,), "1_main", {A: 401}),))}),
         "holds 401 MiB of GPU-a, its limit is 400 MiB"),
    ],
)  # fmt: skip
def test_what_is_given_away_twice_is_found(observed: Observation, says: str) -> None:
    assert any(says in found for found in over_committed(observed))


@pytest.mark.parametrize(
    "observed",
    [
        grants(grant("1", share(memory=1000, cores=100), init=(share(memory=1000, cores=100),))),
        grants(grant("1", share(memory=500, cores=50)), grant("2", share(memory=500, cores=50))),
        grants(grant("1", share(A, mode=Mode.WHOLE, memory=1000)), grant("2", share(B, memory=1000))),
        grants(*(grant(str(i), share(mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=i))) for i in range(7))),
        SEEN._replace(grants=(*SEEN.grants, grant("gone", share(memory=1000)))),
        grants(grant("1", share(), init=(share(mode=Mode.WHOLE, memory=1000),))),
        grants(grant("1", share(), share(), init=(share(mode=Mode.WHOLE, memory=1000),))),
    ],
)
def test_a_full_gpu_is_not_too_much(observed: Observation) -> None:
    assert over_committed(observed) == []


def node(**changed: Any) -> Change:
    return lambda observed: observed._replace(nodes={"n": observed.nodes["n"]._replace(**changed)})


def without(uid: str) -> Change:
    return lambda observed: observed._replace(pods={key: pod for key, pod in observed.pods.items() if key != uid})


def elsewhere(observed: Observation) -> Observation:
    return observed._replace(pods=observed.pods | {"1": Pod("d", "pod-1", "other")})


FIRST, SECOND = NODE.containers
CHANGES: list[tuple[Change, set[str]]] = [
    (
        without("1"),
        {"stays behind its pod", "the ledger has", "whose pod is gone", "whose pod is not here", "its pod does not"},
    ),
    (elsewhere, {"the pod is on other", "whose pod is on other", "whose pod is not here", "its pod does not"}),
    (lambda observed: observed._replace(grants=(*observed.grants, observed.grants[2])), {"has 2 grants"}),
    (lambda observed: observed._replace(grants=observed.grants[1:]), {"the ledger has", "which no grant names"}),
    (
        lambda observed: observed._replace(ledger={A: (1, 400, 0)}),
        {"the ledger has (shares, MiB, percent) (1, 400, 0)"},
    ),
    (lambda observed: observed._replace(ledger={A: (2, 800, 0), B: (1, 1, 0)}), {"of GPU-b on n"}),
    (node(allocations=(*ALLOCATIONS, Holding(name="x", tickets=frozenset("t"), bound=bound("over")))),
     {"has ended and is not listed"}),
    (node(allocations=(structs.replace(ALLOCATIONS[0], bound=bound("1", B)), ALLOCATIONS[1])),
     {"other GPUs than the grant", "shows other GPUs", "sees other GPUs"}),
    (node(specs=NODE.specs | {"name-9": (A,)}), {"no one owns the CDI spec name-9"}),
    (node(specs=NODE.specs | {"unclaimed": (A,)}), {"no one owns the CDI spec unclaimed"}),
    (node(specs=NODE.specs | {"name-1": (B,)}), {"shows other GPUs than its own"}),
    (node(folders=NODE.folders | {"9_main": FOLDER}), {"no one owns the container folder 9_main"}),
    (node(folders=NODE.folders | {"1_main": Folder(damage="damaged")}), {"cannot be read: damaged"}),
    (node(folders=NODE.folders | {"1_main": FOLDER._replace(memory_bytes={A: 500 * MIB})}), {"not those of the grant"}),
    (node(folders=NODE.folders | {"1_main": FOLDER._replace(cores={A: 9})}), {"not those of the grant"}),
    (node(folders=NODE.folders | {"1_main": FOLDER._replace(used_bytes={A: 401 * MIB})}), {"exceeds the limits"}),
    (node(folders={"2_main": FOLDER}), {"the folder 1_main, which is not its own"}),
    (node(holders=(*HOLDERS, Holder("d", "pod-9", "main", frozenset({"ticket-9"})))), {"whose pod is not here"}),
    (node(holders=(HOLDERS[0]._replace(devices=frozenset({"ticket-7"})), HOLDERS[1])), {"the record does not know"}),
    (node(holders=(HOLDERS[0]._replace(devices=frozenset({"ticket-2"})), HOLDERS[1])), {"gave ticket-2 to"}),
    (node(containers=(FIRST._replace(folder="2_main"), SECOND)), {"the folder 2_main, which is not its own"}),
    (node(containers=(FIRST._replace(visible=(B,), held_mib={}), SECOND)), {"sees other GPUs"}),
    (node(containers=(FIRST._replace(visible=(B,), folder="", held_mib={}), SECOND)), {"sees other GPUs"}),
    (node(containers=(FIRST._replace(folder=""), SECOND)), {"runs without its limits"}),
    (node(containers=(FIRST._replace(held_mib={B: 1}), SECOND)), {"holds memory of GPU-b"}),
    (node(containers=(FIRST._replace(pod_uid="over"), SECOND)), {"runs, its pod does not"}),
    (node(allocations=(), holders=(), specs={}, folders={}, containers=(FIRST,)), {"which the record does not know"}),
]  # fmt: skip


M, K = "MIG-m", "MIG-k"
PLACE, OTHER = (Instance(gpu=C, profile="1g.5gb", start=start) for start in (0, 1))
CUT, SLICED, SERVED, OWN = (
    Holding(name=f"name-{uid}", tickets=frozenset({ticket}), bound=bound(uid, gpu, mode, *places))
    for uid, ticket, gpu, mode, places in (
        ("m", "ticket-m", C, Mode.MIG, (PLACE,)),
        ("t", f"{A}::1", A, Mode.TIMESLICE, ()),
        ("s", f"{B}::1", B, Mode.MPS, ()),
        ("w", D, D, Mode.WHOLE, ()),
    )
)
DEVICES = {"m": M, "t": A, "s": B, "w": D}
PARTS = OnNode(
    holders=tuple(
        Holder("d", f"pod-{uid}", "main", each.tickets)
        for uid, each in zip("mtsw", (CUT, SLICED, SERVED, OWN), strict=True)
    ),
    allocations=(CUT, SLICED, SERVED, OWN),
    specs={f"name-{uid}": (device,) for uid, device in DEVICES.items()},
    containers=tuple(Container(uid, f"c-{uid}", (device,), held_mib={device: 9}) for uid, device in DEVICES.items()),
    divided=frozenset({C}),
    instances={M: PLACE},
    noted=frozenset({PLACE}),
    served=frozenset({B}),
    kept=frozenset({B}),
)
"""An instance of MIG by a grant, and what kubelet allocates: one of several turns, a client of MPS, a whole GPU."""
DIVIDED = Observation(
    grants=(grant("m", share(C, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=0))),),
    pods={uid: Pod("d", f"pod-{uid}", "n") for uid in "mtsw"},
    gpus={},
    ledger=None,
    nodes={"n": PARTS},
)
FIRST_OF_PARTS, *REST = PARTS.containers
CHANGES_OF_PARTS: list[tuple[Change, set[str]]] = [
    (node(instances={M: PLACE, K: OTHER}), {"no one made 1g.5gb at 1"}),
    (node(instances={M: PLACE, K: OTHER}, noted=frozenset({PLACE, OTHER})), {"no one has 1g.5gb at 1"}),
    (node(noted=frozenset({PLACE, OTHER})), {"no one has 1g.5gb at 1"}),
    (node(instances={M: PLACE, K: OTHER}, noted=frozenset({PLACE, OTHER}), labelled=frozenset({C})), set()),
    (node(instances={M: PLACE, K: OTHER}, labelled=frozenset({C})), {"no one made 1g.5gb at 1"}),
    (node(allocations=(structs.replace(CUT, bound=bound("m", C, Mode.MIG, OTHER)), *PARTS.allocations[1:])),
     {"other MIG instances than the grant", "shows other GPUs", "sees other GPUs", "no one has 1g.5gb at 0"}),
    (node(containers=(FIRST_OF_PARTS._replace(visible=(C,), held_mib={}), *REST)), {"partitioned by MIG"}),
    (node(containers=(FIRST_OF_PARTS._replace(visible=(K,), held_mib={}), *REST), instances={M: PLACE, K: OTHER}),
     {"sees other GPUs", "no one made"}),
    (node(served=frozenset({A, B})), {"no one owns the processes of MPS on GPU-a"}),
    (node(served=frozenset()), {"no daemon of MPS on GPU-b"}),
    (node(served=frozenset(), kept=frozenset()), {"no daemon of MPS on GPU-b"}),
    (node(kept=frozenset({A, B})), {"no daemon of MPS on GPU-a"}),
    (node(allocations=(*PARTS.allocations, structs.replace(SERVED, name="x", bound=bound("t", B, Mode.MPS)))), set()),
    (node(allocations=(*PARTS.allocations, structs.replace(OWN, name="x", bound=bound("t", D, Mode.WHOLE)))),
     {"GPU-d is given as a whole to 2 pods"}),
    (node(allocations=(*PARTS.allocations, structs.replace(SLICED, name="x", bound=bound("s", D, Mode.TIMESLICE)))),
     {"timeslice by kubelet and whole by kubelet"}),
    (node(allocations=(*PARTS.allocations, structs.replace(CUT, name="x", bound=bound("t", D, Mode.TIMESLICE)))),
     {"timeslice by grants and whole by kubelet"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("observed", "change", "says"),
    [*((SEEN, *each) for each in CHANGES), (DIVIDED, node(), set()), *((DIVIDED, *each) for each in CHANGES_OF_PARTS)],
)
def test_a_lie_is_found_and_nothing_else(observed: Observation, change: Change, says: set[str]) -> None:
    found = disagreements(change(observed))
    sentences = [finding.says for finding in found]
    assert len({finding.about for finding in found}) == len(found)
    assert all(any(part in sentence for sentence in sentences) for part in says), sentences
    assert all(any(part in sentence for part in says) for sentence in sentences), sentences


@pytest.mark.parametrize(("lives", "says"), [(True, ["pods m and t on n see MIG-m"]), (False, [])])
def test_an_instance_in_two_pods_is_too_much(lives: bool, says: list[str]) -> None:
    """The processes of a pod that is over are about to go."""
    observed = node(containers=tuple(Container(uid, f"c-{uid}", (M,)) for uid in "mt"))(DIVIDED)
    pods = observed.pods | {"t": Pod("d", "pod-t", "n", over=not lives)}
    assert over_committed(observed._replace(pods=pods)) == says


def test_of_a_kubelet_that_does_not_answer_nothing_is_concluded() -> None:
    ended = Holding(name="x", tickets=frozenset("t"), bound=bound("over"))
    assert disagreements(node(holders=None, allocations=(*ALLOCATIONS, ended))(SEEN)) == []


def test_a_ledger_that_does_not_answer_is_not_compared() -> None:
    assert disagreements(SEEN._replace(ledger=None)) == []


def test_work_in_progress_gets_time_and_what_remains_is_reported() -> None:
    settling = Settling(within_s=60)
    for now in (0, 60):
        assert settling.stays([Finding("a", f"at {now}"), Finding("b", "b")], now) == []
    assert settling.stays([Finding("a", "at 61")], 61) == ["at 61"]
    assert settling.stays([Finding("b", "again")], 120) == []
    assert settling.stays([Finding("a", "first"), Finding("b", "again")], 121) == []
