"""What the ledger counts, event by event."""

import msgspec
import pytest

from lamina.control.claims import GrantRecord, Reservation
from lamina.control.ledger import DOUBT_S, REMEMBERED_S, RESERVATION_S, DoesNotFit, Ledger, reservation
from lamina.control.stages import PodState, Stage
from lamina.control.unrecorded import Asked, asked_by, most_held
from lamina.dialects.config import Config
from lamina.model.gpus import Gpu, InstanceThere, MigInstance, Mode
from lamina.model.grants import ContainerGrant, Grant, Share
from lamina.model.ledger import NOTHING, Taken
from lamina.model.mig import Placed
from lamina.model.requests import ContainerRequest, PodRequest
from tests.control.cluster import MIB, gpu_pod, gpus, inventory

BOUND = PodState(Stage.BOUND, "node-0")
DONE = PodState(Stage.FINISHED, "node-0")


def shares(
    memory: int = 1000, *, cores: int = 0, gpu: str = "GPU-0", mode: Mode = Mode.QUOTA
) -> tuple[ContainerGrant, ...]:
    share = Share(gpu=gpu, memory_mib=memory, cores=cores, mode=mode)
    return (ContainerGrant(name="main", shares=(share,)),)


def record(pod: str = "u1", memory: int = 1000, *, uid: str = "g1", node: str = "node-0") -> GrantRecord:
    grant = Grant(pod="p", pod_uid=pod, node=node, dialect="hami", containers=shares(memory))
    return GrantRecord(uid, "default", f"p-{pod}", grant)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    made.inventory_seen(inventory())
    return made


def taken(ledger: Ledger, node: str = "node-0", *, without: str = "") -> int:
    return ledger.taken(node, without=without).get("GPU-0", NOTHING).memory_mib


def reserve(ledger: Ledger, pod: str, memory: int, **rest: object) -> None:
    at = reservation("node-0", shares(memory, **rest), 0)  # type: ignore[arg-type]
    ledger.reserve(pod, "default", "p", at)


def test_a_reservation_counts_until_it_lapses(ledger: Ledger) -> None:
    reserve(ledger, "u1", 5000)
    ledger.tick(RESERVATION_S - 1)
    assert taken(ledger) == 5000 and taken(ledger, without="u1") == 0
    ledger.tick(RESERVATION_S)
    assert taken(ledger) == 0


def test_a_grant_takes_the_place_of_its_reservation(ledger: Ledger) -> None:
    reserve(ledger, "u1", 1000)
    ledger.grant_seen(record())
    assert taken(ledger) == 1000
    ledger.release("u1")
    assert taken(ledger) == 1000


def test_a_grant_of_other_size_counts_with_the_larger_until_the_reservation_ends(ledger: Ledger) -> None:
    reserve(ledger, "u1", 4000)
    ledger.grant_seen(record(memory=1000))
    assert taken(ledger) == 4000
    ledger.release("u1")
    assert taken(ledger) == 1000


@pytest.mark.parametrize(
    ("first", "more", "sentence"),
    [
        ({"memory": 32000}, {"memory": 769}, "GPU GPU-0 of node node-0 has 768 MiB free; needed are 769"),
        ({"memory": 1, "cores": 60}, {"memory": 1, "cores": 41}, "has 40 % of compute free; needed are 41"),
        ({"memory": 1}, {"memory": 32768, "mode": Mode.WHOLE}, "is not free to be used whole"),
        ({"memory": 32768, "mode": Mode.WHOLE}, {"memory": 1}, "is used whole"),
        ({"memory": 1}, {"memory": 1, "gpu": "GPU-9"}, "node node-0 has no GPU GPU-9"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    ledger: Ledger, first: dict[str, object], more: dict[str, object], sentence: str
) -> None:
    reserve(ledger, "u1", **first)  # type: ignore[arg-type]
    before = dict(ledger.taken("node-0"))
    with pytest.raises(DoesNotFit, match=sentence):
        reserve(ledger, "u2", **more)  # type: ignore[arg-type]
    assert ledger.taken("node-0") == before and not ledger.holds("u2", "node-0")


A100 = Gpu(
    uuid="GPU-0", index=0, model="A100", memory_mib=40960, capacity_mib=40960, mig_card="A100-40GB",
    modes=(Mode.QUOTA, Mode.MIG),
)  # fmt: skip


def instance(profile: str, start: int) -> Reservation:
    share = Share(gpu="GPU-0", memory_mib=9856, cores=14, mode=Mode.MIG, mig=MigInstance(profile=profile, start=start))
    return reservation("node-0", (ContainerGrant(name="main", shares=(share,)),), 0)


@pytest.mark.parametrize(
    ("first", "more", "sentence"),
    [
        (instance("1g.5gb", 6), instance("1g.5gb", 6), "has given out 1g.5gb at 6 already"),
        (instance("3g.20gb", 4), instance("1g.5gb", 6), "has no place for its instances: 1g.5gb cannot begin at 6 of"),
        (instance("1g.5gb", 6), instance("1g.5gb", 7), "has no place for its instances: 1g.5gb cannot begin at 7 of"),
        (instance("1g.5gb", 6), reservation("node-0", shares(1), 0), "is in the mode mig"),
        (reservation("node-0", shares(1), 0), instance("1g.5gb", 6), "is in the mode quota"),
        (instance("1g.5gb", 6), instance("9g.5gb", 0), "A100-40GB has no MIG profile 9g.5gb"),
    ],
)
def test_instances_never_overlap_and_modes_never_mix(
    ledger: Ledger, first: Reservation, more: Reservation, sentence: str
) -> None:
    ledger.inventory_seen(inventory("node-0", A100))
    ledger.reserve("u1", "default", "p", first)
    before = dict(ledger.taken("node-0"))
    with pytest.raises(DoesNotFit, match=sentence):
        ledger.reserve("u2", "default", "q", more)
    assert ledger.taken("node-0") == before
    ledger.release("u1")
    if "9g" not in sentence and "at 7" not in sentence:
        ledger.reserve("u2", "default", "q", more)


@pytest.mark.parametrize(
    ("gpu", "fits"),
    [
        ({}, True),
        ({"modes": (Mode.QUOTA,)}, False),
        ({"modes": ()}, False),
        ({"mode": Mode.MIG}, True),
        ({"mode": Mode.QUOTA}, False),
        ({"mig_card": "A100-400GB"}, False),
        ({"instances": (InstanceThere(profile="1g.5gb", start=6),)}, True),
        ({"instances": (InstanceThere(profile="1g.5gb", start=6, used=True),)}, False),
        ({"instances": (InstanceThere(profile="3g.20gb", start=4),)}, False),
        ({"instances": (InstanceThere(profile="3g.20gb", start=4, made=True),)}, True),
    ],
)
def test_an_instance_goes_where_policy_and_what_is_there_let_it(
    ledger: Ledger, gpu: dict[str, object], fits: bool
) -> None:
    ledger.inventory_seen(inventory("node-0", msgspec.structs.replace(A100, **gpu)))
    if fits:
        ledger.reserve("u1", "default", "p", instance("1g.5gb", 6))
        assert ledger.taken("node-0")["GPU-0"].instances == (Placed("1g.5gb", 6),)
    else:
        with pytest.raises(DoesNotFit):
            ledger.reserve("u1", "default", "p", instance("1g.5gb", 6))


def test_slots_are_a_limit(ledger: Ledger) -> None:
    for number in range(10):
        reserve(ledger, f"u{number}", 1)
    with pytest.raises(DoesNotFit, match="has 0 slots free; needed are 1"):
        reserve(ledger, "another", 1)


def test_a_node_without_inventory_and_a_sick_gpu_take_nothing(ledger: Ledger) -> None:
    with pytest.raises(DoesNotFit, match="node node-9 has no inventory"):
        ledger.reserve("u", "default", "p", Reservation("node-9", {"GPU-0": Taken(1, 1)}, 60))
    sick = gpus(1)[0].__class__(
        uuid="GPU-0", index=0, model="m", memory_mib=1, capacity_mib=1, healthy=False, reason="XID 79"
    )
    ledger.inventory_seen(inventory("node-0", sick))
    with pytest.raises(DoesNotFit, match="is not healthy: XID 79"):
        reserve(ledger, "u1", 1)


@pytest.mark.parametrize("end", [Stage.FINISHED, Stage.GONE])
def test_the_end_of_a_pod_frees_its_share_whatever_comes_late(ledger: Ledger, end: Stage) -> None:
    ledger.grant_seen(record())
    ledger.pod_seen("u1", PodState(end, "node-0"), 1)
    assert taken(ledger) == 0
    ledger.pod_seen("u1", BOUND, 2)
    ledger.grant_seen(record())
    assert taken(ledger) == 0
    with pytest.raises(DoesNotFit, match="pod default/p has ended"):
        reserve(ledger, "u1", 1)


def test_a_late_word_of_a_pod_without_node_takes_its_node_not_away(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    ledger.pod_seen("u1", BOUND, 1)
    ledger.pod_seen("u1", PodState(Stage.PENDING), 2)
    assert ledger.pod("u1") == BOUND


def test_a_bound_pod_keeps_what_a_deleted_grant_said(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    ledger.pod_seen("u1", BOUND, 1)
    ledger.grant_gone("g1", "u1", 2)
    assert taken(ledger) == 1000
    ledger.pod_seen("u1", DONE, 3)
    assert taken(ledger) == 0


@pytest.mark.parametrize("late", [False, True])
def test_a_bound_pod_counts_once_where_a_new_grant_followed_a_deleted_one(ledger: Ledger, late: bool) -> None:
    ledger.pod_seen("u1", BOUND, 0)
    ledger.grant_seen(record(uid="old"))
    if late:
        ledger.grant_seen(record(uid="new"))
        ledger.grant_gone("old", "u1", 0)
    else:
        ledger.grant_gone("old", "u1", 0)
        ledger.grant_seen(record(uid="new"))
    assert taken(ledger) == 1000
    ledger.grant_gone("new", "u1", 0)
    assert taken(ledger) == 1000


def test_a_deleted_grant_of_a_waiting_pod_frees_and_stays_deleted(ledger: Ledger) -> None:
    ledger.pod_seen("u1", PodState(Stage.PENDING), 0)
    ledger.grant_seen(record())
    ledger.grant_gone("g1", "u1", 1)
    ledger.grant_seen(record())
    assert taken(ledger) == 0
    ledger.grant_seen(record(uid="g2"))
    assert taken(ledger) == 1000


def test_a_grant_deleted_while_its_pod_seemed_bound_elsewhere_is_dropped_once_that_is_known(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    ledger.pod_seen("u1", PodState(Stage.BOUND, "node-1"), 1)
    ledger.grant_gone("g1", "u1", 2)
    assert taken(ledger) == 0


def test_a_grant_without_its_pod_counts_and_comes_into_doubt(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    assert ledger.doubts(100) == ledger.doubts(100 + DOUBT_S - 1) == []
    ((uid, namespace, pod),) = ledger.doubts(100 + DOUBT_S)
    assert (uid, namespace, pod) == ("u1", "default", "p") and taken(ledger) == 1000
    ledger.pod_seen("u1", BOUND, 131)
    assert ledger.doubts(200) == []


@pytest.mark.parametrize("state", [PodState(Stage.PENDING), PodState(Stage.BOUND, "node-1")])
def test_a_grant_that_contradicts_its_pod_comes_into_doubt(ledger: Ledger, state: PodState) -> None:
    ledger.pod_seen("u1", state, 0)
    ledger.grant_seen(record())
    assert ledger.doubts(0) == []
    assert [doubt.pod_uid for doubt in ledger.doubts(DOUBT_S)] == ["u1"]


def test_an_attempt_under_way_is_not_doubted(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    reserve(ledger, "u1", 1000)
    assert ledger.doubts(0) == ledger.doubts(DOUBT_S) == []
    ledger.release("u1")
    assert ledger.doubts(DOUBT_S) == [] and len(ledger.doubts(2 * DOUBT_S)) == 1


def test_what_ended_is_forgotten_after_a_while(ledger: Ledger) -> None:
    ledger.grant_seen(record())
    ledger.pod_gone("u1", 10)
    ledger.grant_gone("g1", "u1", 10)
    ledger.tick(10 + REMEMBERED_S)
    assert ledger.pod("u1") == PodState()
    ledger.grant_seen(record())
    assert taken(ledger) == 1000


def test_a_pod_with_grants_on_two_nodes_counts_on_both(ledger: Ledger) -> None:
    ledger.inventory_seen(inventory("node-1"))
    ledger.grant_seen(record(uid="g1"))
    ledger.grant_seen(record(uid="g2", node="node-1"))
    assert (taken(ledger), taken(ledger, "node-1")) == (1000, 1000)
    assert ledger.taken_in("default") == Taken(2, 2000) and ledger.taken_in("default", without="u1") == NOTHING


def test_a_grant_on_a_gpu_that_nobody_knows_still_counts(ledger: Ledger) -> None:
    ledger.inventory_gone("node-0")
    ledger.grant_seen(record())
    ledger.inventory_seen(inventory())
    assert taken(ledger) == 1000


def test_changed_names_the_nodes_whose_sums_changed() -> None:
    told: list[str] = []
    ledger = Ledger(changed=told.append)
    ledger.inventory_seen(inventory())
    ledger.grant_seen(record())
    ledger.grant_seen(record())
    ledger.pod_gone("u1", 2)
    assert told == ["node-0"] * 3


def asked(memory: int = 1000, **rest: object) -> Asked:
    container = ContainerRequest(container="main", count=1, memory_mib=memory, **rest)  # type: ignore[arg-type]
    return Asked("default", "p", PodRequest(dialect="hami", containers=(container,)))


def test_a_running_pod_without_a_grant_counts_on_each_gpu_until_it_ends(ledger: Ledger) -> None:
    ledger.pod_seen("u1", BOUND, 0, asked(cores=30))
    assert ledger.taken("node-0") == {f"GPU-{i}": Taken(1, 1000, 30) for i in range(2)}
    assert ledger.taken_in("default") == Taken(2, 2000, 60)
    ledger.pod_seen("u1", DONE, 1)
    assert ledger.taken("node-0") == {} and ledger.taken_in("default") == NOTHING


def test_a_grant_says_better_what_a_running_pod_holds(ledger: Ledger) -> None:
    ledger.pod_seen("u1", BOUND, 0, asked(5000))
    ledger.grant_seen(record(memory=1000))
    assert taken(ledger) == 1000 and ledger.taken("node-0").keys() == {"GPU-0"}
    ledger.grant_gone("g1", "u1", 1)
    assert taken(ledger) == 1000 and ledger.taken("node-0").keys() == {"GPU-0"}, "what was known is not forgotten"


def test_what_an_unrecorded_pod_holds_follows_the_inventory() -> None:
    ledger = Ledger()
    ledger.pod_seen("u1", BOUND, 0, asked())
    assert ledger.taken("node-0") == {}
    ledger.inventory_seen(inventory())
    assert ledger.taken("node-0").keys() == {"GPU-0", "GPU-1"}
    ledger.inventory_gone("node-0")
    assert ledger.taken("node-0") == {}
    ledger.inventory_seen(inventory("node-0", *gpus(1)))
    assert ledger.taken("node-0").keys() == {"GPU-0"}


WAITS = {"name": "main", "state": {"waiting": {"reason": "CreateContainerError"}}, "restartCount": 0}


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({}, False),
        (WAITS, False),
        ({"name": "main", "state": {}}, False),
        ({"name": "other", "state": {"running": {}}}, False),
        ({"name": "main", "state": {"running": {}}}, True),
        ({"name": "main", "state": {"terminated": {"exitCode": 1}}}, True),
        ({**WAITS, "restartCount": 1}, True),
        ({**WAITS, "lastState": {"terminated": {"exitCode": 1}}}, True),
    ],
)
def test_only_a_container_that_has_run_can_hold_anything(status: dict[str, object], counts: bool) -> None:
    pod = gpu_pod(gpu=1, gpumem=1000)
    pod["spec"]["nodeName"] = "node-0"
    pod["status"] = {"phase": "Running", "containerStatuses": [status] if status else []}
    assert (asked_by(pod, Config()) is not None) == counts


def test_a_running_pod_that_nobody_can_read_may_hold_whole_gpus() -> None:
    pod = gpu_pod(gpu="many")
    pod["spec"]["nodeName"] = "node-0"
    pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    found = asked_by(pod, Config())
    assert found is not None
    assert most_held(found.request, inventory())["GPU-0"] == Taken(1, MIB, 100, True)
