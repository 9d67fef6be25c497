"""What the ledger counts, event by event."""

import msgspec
import pytest

from lamina.configuration import DEFAULT
from lamina.core.claims import HeldClaim
from lamina.core.gpus import ExistingMigInstance, Gpu, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.core.ledger import NOTHING, Taken
from lamina.core.mig import Placed
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.ledger.holds import GRANT_S, Hold, Why
from lamina.ledger.ledger import REMEMBERED_S, UNCONFIRMED_S, DoesNotFit, Ledger
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ledger.pods import parse_pod
from lamina.ledger.ungranted_pods import RunningRequest, largest_holdings, running_request
from lamina.ledger.used_claims import ClaimName
from lamina.ports.kube import Object
from tests.worlds.objects import MIB, gpu_pod, gpus, inventory

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
    made.observe_inventory(inventory())
    return made


def taken(ledger: Ledger, node: str = "node-0", *, without: str = "") -> int:
    return ledger.totals.taken(node, without=without).get("GPU-0", NOTHING).memory_mib


def hold(ledger: Ledger, pod: str, memory: int, **rest: object) -> None:
    ledger.hold(held_shares(pod, memory, **rest))


def held_shares(pod: str, memory: int, why: Why = Why.GRANT, **rest: object) -> Hold:
    return Hold.of_shares(pod, "default", "p", "node-0", shares(memory, **rest), 0, why)  # type: ignore[arg-type]


def test_a_hold_counts_until_it_lapses(ledger: Ledger) -> None:
    hold(ledger, "u1", 5000)
    ledger.expire(GRANT_S - 1)
    assert taken(ledger) == 5000 and taken(ledger, without="u1") == 0
    ledger.expire(GRANT_S)
    assert taken(ledger) == 0


def test_a_hold_is_released_only_for_its_reason(ledger: Ledger) -> None:
    """So what is held for an attempt to bind outlives the answer that the bind was expected for."""
    ledger.hold(held_shares("u1", 5000, Why.BIND))
    ledger.hold(held_shares("u1", 4000, Why.GRANT))
    assert not ledger.release("u1", Why.BIND) and taken(ledger) == 4000
    assert ledger.release("u1", Why.GRANT) and taken(ledger) == 0
    assert not ledger.release("u1", Why.GRANT), "nothing is held any more"


def test_room_for_several_pods_is_held_for_all_or_none(ledger: Ledger) -> None:
    holds = [held_shares(f"u{number}", 4000, Why.PLAN) for number in range(3)]
    ledger.hold(holds[2])
    ledger.observe_pod("u1", DONE, 0)
    with pytest.raises(DoesNotFit, match="has ended"):
        ledger.hold_all(holds)
    assert list(ledger.holds()) == [] and taken(ledger) == 0
    ledger.hold_all([holds[0], holds[2]])
    assert list(ledger.holds()) == [holds[0], holds[2]] and taken(ledger) == 8000


def test_a_grant_takes_the_place_of_its_hold(ledger: Ledger) -> None:
    hold(ledger, "u1", 1000)
    ledger.observe_grant(record())
    assert taken(ledger) == 1000
    ledger.release("u1", Why.GRANT)
    assert taken(ledger) == 1000


@pytest.mark.parametrize(("revision", "counted"), [(6, 2000), (5, 2000), (4, 1000)])
def test_a_grant_counts_as_it_was_written_last(ledger: Ledger, revision: int, counted: int) -> None:
    """One that is changed by hand keeps its revision."""
    for memory, number in ((1000, 5), (2000, revision)):
        found = record(memory=memory)
        ledger.observe_grant(found._replace(grant=msgspec.structs.replace(found.grant, revision=number)))
    assert taken(ledger) == counted


def test_a_grant_of_other_size_counts_with_the_larger_until_the_hold_ends(ledger: Ledger) -> None:
    hold(ledger, "u1", 4000)
    ledger.observe_grant(record(memory=1000))
    assert taken(ledger) == 4000
    ledger.release("u1", Why.GRANT)
    assert taken(ledger) == 1000


@pytest.mark.parametrize(
    ("first", "more", "sentence"),
    [
        ({"memory": 32000}, {"memory": 769}, "GPU GPU-0 of node node-0: needs 769 MiB; the GPU has 768 MiB free"),
        ({"memory": 1, "cores": 60}, {"memory": 1, "cores": 41}, "needs 41 % of a GPU's time; the most free is 40 %"),
        ({"memory": 1}, {"memory": 32768, "mode": Mode.WHOLE}, "whole GPU needed; it is not idle"),
        ({"memory": 32768, "mode": Mode.WHOLE}, {"memory": 1}, "the GPU is held whole by another pod"),
        ({"memory": 1}, {"memory": 1, "gpu": "GPU-9"}, "node node-0 has no GPU GPU-9"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    ledger: Ledger, first: dict[str, object], more: dict[str, object], sentence: str
) -> None:
    hold(ledger, "u1", **first)  # type: ignore[arg-type]
    before = dict(ledger.totals.taken("node-0"))
    with pytest.raises(DoesNotFit, match=sentence):
        hold(ledger, "u2", **more)  # type: ignore[arg-type]
    assert ledger.totals.taken("node-0") == before and not ledger.totals.holds("u2", "node-0")


A100 = Gpu(
    uuid="GPU-0", index=0, model="A100", memory_mib=40960, capacity_mib=40960, mig_card="A100-40GB",
    modes=(Mode.QUOTA, Mode.MIG),
)  # fmt: skip


def instance(profile: str, start: int) -> Hold:
    share = Share(gpu="GPU-0", memory_mib=9856, cores=14, mode=Mode.MIG, mig=MigInstance(profile=profile, start=start))
    return Hold.of_shares("u1", "default", "p", "node-0", (ContainerGrant(name="main", shares=(share,)),), 0)


@pytest.mark.parametrize(
    ("first", "more", "sentence"),
    [
        (
            instance("1g.5gb", 6),
            instance("1g.5gb", 6),
            "for a MIG instance: 1g.5gb at slice 6 is in use already",
        ),
        (
            instance("3g.20gb", 4),
            instance("1g.5gb", 6),
            "for a MIG instance: 1g.5gb cannot begin at 6 of",
        ),
        (
            instance("1g.5gb", 6),
            instance("1g.5gb", 7),
            "for a MIG instance: 1g.5gb cannot begin at 7 of",
        ),
        (instance("1g.5gb", 6), held_shares("u1", 1), "pods keep the GPU in the mode mig"),
        (held_shares("u1", 1), instance("1g.5gb", 6), "pods keep the GPU in the mode quota"),
        (instance("1g.5gb", 6), instance("9g.5gb", 0), "A100-40GB has no MIG profile 9g.5gb"),
    ],
)
def test_instances_never_overlap_and_modes_never_mix(ledger: Ledger, first: Hold, more: Hold, sentence: str) -> None:
    ledger.observe_inventory(inventory("node-0", A100))
    ledger.hold(first)
    more = more._replace(uid="u2", pod="q")
    before = dict(ledger.totals.taken("node-0"))
    with pytest.raises(DoesNotFit, match=sentence):
        ledger.hold(more)
    assert ledger.totals.taken("node-0") == before
    ledger.release("u1", Why.GRANT)
    if "9g" not in sentence and "at 7" not in sentence:
        ledger.hold(more)


@pytest.mark.parametrize(
    ("gpu", "fits"),
    [
        ({}, True),
        ({"modes": (Mode.QUOTA,)}, False),
        ({"modes": ()}, False),
        ({"mode": Mode.MIG}, True),
        ({"mode": Mode.QUOTA}, False),
        ({"mig_card": "A100-400GB"}, False),
        ({"instances": (ExistingMigInstance(profile="1g.5gb", start=6),)}, True),
        ({"instances": (ExistingMigInstance(profile="1g.5gb", start=6, used=True),)}, False),
        ({"instances": (ExistingMigInstance(profile="3g.20gb", start=4),)}, False),
        ({"instances": (ExistingMigInstance(profile="3g.20gb", start=4, made=True),)}, True),
    ],
)
def test_an_instance_goes_where_policy_and_what_is_there_let_it(
    ledger: Ledger, gpu: dict[str, object], fits: bool
) -> None:
    ledger.observe_inventory(inventory("node-0", msgspec.structs.replace(A100, **gpu)))
    if fits:
        ledger.hold(instance("1g.5gb", 6))
        assert ledger.totals.taken("node-0")["GPU-0"].instances == (Placed("1g.5gb", 6),)
    else:
        with pytest.raises(DoesNotFit):
            ledger.hold(instance("1g.5gb", 6))


def test_slots_are_a_limit(ledger: Ledger) -> None:
    for number in range(10):
        hold(ledger, f"u{number}", 1)
    with pytest.raises(DoesNotFit, match="all 10 slots are taken"):
        hold(ledger, "another", 1)


def test_a_node_without_inventory_and_a_sick_gpu_take_nothing(ledger: Ledger) -> None:
    with pytest.raises(DoesNotFit, match="node node-9 has no inventory"):
        ledger.hold(Hold("u", "default", "p", "node-9", {"GPU-0": Taken(1, 1)}, 60, Why.GRANT))
    sick = gpus(1)[0].__class__(
        uuid="GPU-0", index=0, model="m", memory_mib=1, capacity_mib=1, healthy=False, reason="XID 79"
    )
    ledger.observe_inventory(inventory("node-0", sick))
    with pytest.raises(DoesNotFit, match="no healthy GPU \\(XID 79\\)"):
        hold(ledger, "u1", 1)


@pytest.mark.parametrize("end", [Stage.FINISHED, Stage.GONE])
def test_the_end_of_a_pod_frees_its_share_whatever_comes_late(ledger: Ledger, end: Stage) -> None:
    ledger.observe_grant(record())
    ledger.observe_pod("u1", PodState(end, "node-0"), 1)
    assert taken(ledger) == 0
    ledger.observe_pod("u1", BOUND, 2)
    ledger.observe_grant(record())
    assert taken(ledger) == 0
    with pytest.raises(DoesNotFit, match="pod default/p has ended"):
        hold(ledger, "u1", 1)


def test_a_late_word_of_a_pod_without_node_takes_its_node_not_away(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    ledger.observe_pod("u1", BOUND, 1)
    ledger.observe_pod("u1", PodState(Stage.PENDING), 2)
    assert ledger.pod("u1") == BOUND


def test_a_bound_pod_keeps_the_shares_of_a_deleted_grant(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    ledger.observe_pod("u1", BOUND, 1)
    ledger.remove_grant("g1", "u1", 2)
    assert taken(ledger) == 1000
    ledger.observe_pod("u1", DONE, 3)
    assert taken(ledger) == 0


@pytest.mark.parametrize("late", [False, True])
def test_a_bound_pod_counts_once_where_a_new_grant_followed_a_deleted_one(ledger: Ledger, late: bool) -> None:
    ledger.observe_pod("u1", BOUND, 0)
    ledger.observe_grant(record(uid="old"))
    if late:
        ledger.observe_grant(record(uid="new"))
        ledger.remove_grant("old", "u1", 0)
    else:
        ledger.remove_grant("old", "u1", 0)
        ledger.observe_grant(record(uid="new"))
    assert taken(ledger) == 1000
    ledger.remove_grant("new", "u1", 0)
    assert taken(ledger) == 1000


def test_a_deleted_grant_of_a_waiting_pod_frees_and_stays_deleted(ledger: Ledger) -> None:
    ledger.observe_pod("u1", PodState(Stage.PENDING), 0)
    ledger.observe_grant(record())
    ledger.remove_grant("g1", "u1", 1)
    ledger.observe_grant(record())
    assert taken(ledger) == 0
    ledger.observe_grant(record(uid="g2"))
    assert taken(ledger) == 1000


def test_a_grant_deleted_while_its_pod_seemed_bound_elsewhere_is_dropped_once_that_is_known(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    ledger.observe_pod("u1", PodState(Stage.BOUND, "node-1"), 1)
    ledger.remove_grant("g1", "u1", 2)
    assert taken(ledger) == 0


def test_a_grant_without_its_pod_counts_and_comes_into_doubt(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    assert ledger.contradicted_grants(100) == ledger.contradicted_grants(100 + UNCONFIRMED_S - 1) == []
    ((uid, namespace, pod),) = ledger.contradicted_grants(100 + UNCONFIRMED_S)
    assert (uid, namespace, pod) == ("u1", "default", "p") and taken(ledger) == 1000
    ledger.observe_pod("u1", BOUND, 131)
    assert ledger.contradicted_grants(200) == []


@pytest.mark.parametrize("state", [PodState(Stage.PENDING), PodState(Stage.BOUND, "node-1")])
def test_a_grant_that_contradicts_its_pod_comes_into_doubt(ledger: Ledger, state: PodState) -> None:
    ledger.observe_pod("u1", state, 0)
    ledger.observe_grant(record())
    assert ledger.contradicted_grants(0) == []
    assert [doubt.pod_uid for doubt in ledger.contradicted_grants(UNCONFIRMED_S)] == ["u1"]


def test_an_attempt_under_way_is_not_doubted(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    hold(ledger, "u1", 1000)
    assert ledger.contradicted_grants(0) == ledger.contradicted_grants(UNCONFIRMED_S) == []
    ledger.release("u1", Why.GRANT)
    assert ledger.contradicted_grants(UNCONFIRMED_S) == [] and len(ledger.contradicted_grants(2 * UNCONFIRMED_S)) == 1


def test_what_ended_is_forgotten_after_a_while(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    ledger.remove_pod("u1", 10)
    ledger.remove_grant("g1", "u1", 10)
    ledger.expire(10 + REMEMBERED_S)
    assert ledger.pod("u1") == PodState()
    ledger.observe_grant(record())
    assert taken(ledger) == 1000


@pytest.mark.parametrize(("later", "remembered"), [(REMEMBERED_S - 1, True), (REMEMBERED_S, False)])
def test_the_end_of_a_pod_and_of_its_grant_is_remembered_for_a_while(
    ledger: Ledger, later: float, remembered: bool
) -> None:
    ledger.remove_grant("g1", "u1", 10)
    ledger.remove_pod("u2", 10)
    ledger.expire(10 + later)
    assert (ledger.pod("u2").stage is Stage.GONE) is remembered
    ledger.observe_grant(record("u1", uid="g1"))
    assert (taken(ledger) == 0) is remembered


@pytest.mark.parametrize(("later", "gpus_held"), [(REMEMBERED_S - 1, 2), (REMEMBERED_S, 1)])
def test_a_grant_that_was_never_observed_is_remembered_for_a_while(
    ledger: Ledger, later: float, gpus_held: int
) -> None:
    """The pod may run with it, until then, once its other grant is deleted too."""
    ledger.observe_grant(record())
    ledger.observe_pod("u1", BOUND, 0, asked())
    ledger.remove_grant("never observed", "u1", 10)
    ledger.expire(10 + later)
    ledger.remove_grant("g1", "u1", 10 + later)
    assert len(ledger.totals.taken("node-0")) == gpus_held


def test_a_pod_whose_grant_is_missing_counts_with_its_whole_request(ledger: Ledger) -> None:
    """No deletion was observed: the pod may run with another one, which came and went meanwhile."""
    ledger.observe_grant(record())
    ledger.observe_pod("u1", BOUND, 0, asked())
    ledger.miss_grants([record()], 1)
    assert len(ledger.totals.taken("node-0")) == 2


def test_a_pod_with_grants_on_two_nodes_counts_on_both(ledger: Ledger) -> None:
    ledger.observe_inventory(inventory("node-1"))
    ledger.observe_grant(record(uid="g1"))
    ledger.observe_grant(record(uid="g2", node="node-1"))
    assert (taken(ledger), taken(ledger, "node-1")) == (1000, 1000)
    assert (
        ledger.totals.taken_in_namespace("default") == Taken(2, 2000)
        and ledger.totals.taken_in_namespace("default", without="u1") == NOTHING
    )


def test_a_grant_on_an_unknown_gpu_still_counts(ledger: Ledger) -> None:
    ledger.remove_inventory("node-0")
    ledger.observe_grant(record())
    ledger.observe_inventory(inventory())
    assert taken(ledger) == 1000


def claim(name: str, *requests: ContainerGrant, namespace: str = "default") -> HeldClaim:
    return HeldClaim(namespace=namespace, name=name, uid=f"uid-of-{name}", requests=requests)


def test_claims_count_in_their_namespace_until_the_node_no_longer_names_them(ledger: Ledger) -> None:
    ledger.observe_grant(record())
    for node, names in (("node-0", ("a", "b")), ("node-1", ("c",))):
        for name in names:
            used = ClaimName("other" if name == "b" else "default", name)
            ledger.observe_pod(f"uses-{name}", PodState(Stage.BOUND, node), 1, claims=(used,))
    held = (claim("a", *shares(2000, cores=30), *shares(500)), claim("b", *shares(7), namespace="other"))
    ledger.observe_inventory(msgspec.structs.replace(inventory(), claims=held))
    ledger.observe_inventory(msgspec.structs.replace(inventory("node-1"), claims=(claim("c", *shares(40)),)))
    assert ledger.totals.taken_in_namespace("default") == Taken(4, 3540, 30)
    assert ledger.totals.taken_in_namespace("other") == Taken(1, 7)
    assert taken(ledger) == 1000, "their GPUs take no grants, by their mode"
    ledger.observe_inventory(inventory())
    assert ledger.totals.taken_in_namespace("default") == Taken(2, 1040)
    ledger.remove_inventory("node-1")
    assert ledger.totals.taken_in_namespace("default") == Taken(1, 1000)
    assert ledger.totals.taken_in_namespace("other") == NOTHING


def test_a_claim_counts_where_a_pod_of_the_node_uses_it(ledger: Ledger) -> None:
    held = msgspec.structs.replace(inventory(), claims=(claim("a", *shares(2000)),))
    ledger.observe_inventory(held)
    ledger.observe_pod("elsewhere", PodState(Stage.BOUND, "node-1"), 1, claims=(ClaimName("default", "a"),))
    ledger.observe_pod("stranger", PodState(Stage.BOUND, "node-0"), 1, claims=(ClaimName("other", "a"),))
    assert ledger.totals.taken_in_namespace("default") == NOTHING and ledger.claims_on("node-0") == ()
    ledger.observe_pod("user", PodState(Stage.BOUND, "node-0"), 1, claims=(ClaimName("default", "a"),))
    assert ledger.totals.taken_in_namespace("default").memory_mib == 2000
    ledger.remove_pod("user", 2)
    ledger.observe_inventory(msgspec.structs.replace(held, driver="2"))
    assert ledger.totals.taken_in_namespace("default").memory_mib == 2000, "it is prepared still"
    renamed = msgspec.structs.replace(held.claims[0], namespace="victim")
    ledger.observe_inventory(msgspec.structs.replace(held, claims=(renamed,)))
    assert ledger.totals.taken_in_namespace("victim") == NOTHING
    ledger.observe_inventory(held)
    assert ledger.totals.taken_in_namespace("default") == NOTHING, "it was gone meanwhile"


def test_changed_names_the_nodes_whose_sums_changed() -> None:
    reported: list[str] = []
    ledger = Ledger(changed=reported.append)
    ledger.observe_inventory(inventory())
    ledger.observe_grant(record())
    ledger.observe_grant(record())
    ledger.remove_pod("u1", 2)
    assert reported == ["node-0"] * 3


def asked(memory: int = 1000, **rest: object) -> RunningRequest:
    container = ContainerRequest(container="main", count=1, memory_mib=memory, **rest)  # type: ignore[arg-type]
    return RunningRequest("default", "p", PodRequest(dialect="hami", containers=(container,)))


def test_a_running_pod_without_a_grant_counts_on_each_gpu_until_it_ends(ledger: Ledger) -> None:
    ledger.observe_pod("u1", BOUND, 0, asked(cores=30))
    assert ledger.totals.taken("node-0") == {f"GPU-{i}": Taken(1, 1000, 30) for i in range(2)}
    assert ledger.totals.taken_in_namespace("default") == Taken(2, 2000, 60)
    ledger.observe_pod("u1", DONE, 1)
    assert ledger.totals.taken("node-0") == {} and ledger.totals.taken_in_namespace("default") == NOTHING


def test_a_grant_says_better_what_a_running_pod_holds(ledger: Ledger) -> None:
    ledger.observe_pod("u1", BOUND, 0, asked(5000))
    ledger.observe_grant(record(memory=1000))
    assert taken(ledger) == 1000 and ledger.totals.taken("node-0").keys() == {"GPU-0"}
    ledger.remove_grant("g1", "u1", 1)
    assert taken(ledger) == 1000 and ledger.totals.taken("node-0").keys() == {"GPU-0"}, (
        "what was known is not forgotten"
    )


def test_what_an_unrecorded_pod_holds_follows_the_inventory() -> None:
    ledger = Ledger()
    ledger.observe_pod("u1", BOUND, 0, asked())
    assert ledger.totals.taken("node-0") == {}
    ledger.observe_inventory(inventory())
    assert ledger.totals.taken("node-0").keys() == {"GPU-0", "GPU-1"}
    ledger.remove_inventory("node-0")
    assert ledger.totals.taken("node-0") == {}
    ledger.observe_inventory(inventory("node-0", *gpus(1)))
    assert ledger.totals.taken("node-0").keys() == {"GPU-0"}


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
    assert (running_request(parse_pod(pod, DEFAULT)) is not None) == counts


def running(pod: Object) -> Object:
    """The pod, assigned to a node and started there."""
    started = [{"name": each["name"], "state": {"running": {}}} for each in pod["spec"]["containers"]]
    pod["spec"]["nodeName"] = "node-0"
    return pod | {"status": {"phase": "Running", "containerStatuses": started}}


def test_a_running_pod_that_cannot_be_read_may_hold_whole_gpus() -> None:
    found = running_request(parse_pod(running(gpu_pod(gpu="many")), DEFAULT))
    assert found is not None
    assert largest_holdings(found.request, inventory())["GPU-0"] == Taken(1, MIB, 100, True)


@pytest.mark.parametrize(
    "limits",
    [
        {"aliyun.com/gpu-mem": "1"},
        {"nvidia.com/whatever": "1"},
        {"nvidia.com/gpumem": "1.5"},
        {"nvidia.com/gpumem-percentage": "100"},
        {"nvidia.com/gpucores": "100"},
        {"volcano.sh/vgpu-memory": "1000"},
        {f"example.com/r{number}": "1" for number in range(2000)},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_a_container_without_a_ticket_has_no_gpu_of_ours(limits: dict[str, str]) -> None:
    """kubelet ignores resources that its node does not have, and starts such a container without any GPU."""
    pod = gpu_pod()
    pod["spec"]["containers"][0]["resources"]["limits"] = limits
    assert running_request(parse_pod(running(pod), DEFAULT)) is None


def test_only_containers_with_a_ticket_count() -> None:
    pod = gpu_pod(gpu=1, gpumem=1000)
    other = {"name": "other", "image": "x", "resources": {"limits": {"nvidia.com/gpumem-percentage": "100"}}}
    pod["spec"]["containers"].append(other)
    found = running_request(parse_pod(running(pod), DEFAULT))
    assert found is not None and [each.container for each in found.request.containers] == ["main"]


def test_a_running_pod_whose_grant_was_never_observed_counts_with_its_whole_request(ledger: Ledger) -> None:
    """Two replicas made a grant each. This one knows the first; the pod runs with the second; both are deleted."""
    pod = gpu_pod("p", gpu=1, gpumem=1000)
    ledger.observe_grant(record(memory=1000))
    ledger.observe_pod("u1", BOUND, 0)
    ledger.remove_grant("g1", "u1", 0)
    assert list(ledger.totals.taken("node-0")) == ["GPU-0"], "a bound pod keeps what it was granted"
    ledger.remove_grant("never observed", "u1", 0)
    assert list(ledger.totals.taken("node-0")) == ["GPU-0"], "what its containers requested is not known yet"
    request = parse_pod(pod, DEFAULT).request
    assert request is not None
    ledger.observe_pod("u1", BOUND, 0, RunningRequest("default", "p", request))
    assert {gpu: held.memory_mib for gpu, held in ledger.totals.taken("node-0").items()} == {
        gpu.uuid: 1000 for gpu in inventory().gpus
    }
    ledger.expire(REMEMBERED_S)
    assert len(ledger.totals.taken("node-0")) == len(inventory().gpus), "it is not forgotten"
    ledger.observe_grant(record(memory=2000, uid="g3"))
    assert taken(ledger) == 2000, "a grant that exists is what it runs with"
