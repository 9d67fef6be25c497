"""MIG on demand: the smallest profile that holds the request, at the best place, and never two modes on a GPU."""

import itertools
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import ExistingMigInstance, Gpu, Mode
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_rules import MigRule
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.placement import Cause, NodeState, NodeTable, PodPlacement, Survey, alike, fit
from lamina.placement.mig.partitions import partitions_of, scheme_of
from tests.placement.nodes import add, ask, missed, node, placed, request
from tests.placement.strategies import rooms
from tests.placement.survey_agreement import check

A100, A30, H100NVL, GB200 = "A100-40GB", "A30-24GB", "H100-94GB", "GB200-186GB"
QUOTA, MIG = Mode.QUOTA, Mode.MIG
SIZES = {A100: 40960, A30: 24576}
ANY = GpuSelector()
ONLY_MIG, ONLY_QUOTA = GpuSelector(modes=(MIG,)), GpuSelector(modes=(QUOTA,))


def partitionable(*cards: str, modes: tuple[Mode, ...] = (MIG,), **rest: object) -> tuple[Gpu, ...]:
    """GPUs of these cards, named GPU-0, GPU-1 ..."""
    return tuple(
        Gpu(
            uuid=f"GPU-{index}",
            index=index,
            model=f"NVIDIA {card}",
            memory_mib=SIZES.get(card, 300000),
            capacity_mib=SIZES.get(card, 300000),
            mig_capable=True,
            mig_card=card,
            modes=modes,
            **rest,  # type: ignore[arg-type]
        )
        for index, card in enumerate(cards)
    )


def instances(placement: PodPlacement) -> list[tuple[str, int]]:
    """Profile and start of every share, in the pod's order."""
    shares = [share for container in placement.containers for share in container.shares]
    return [(share.mig.profile, share.mig.start) for share in shares if share.mig is not None]


def in_use(*placed: tuple[str, int]) -> Taken:
    return Taken(len(placed), 1000 * len(placed), 10, instances=tuple(Placed(*each) for each in placed))


@pytest.mark.parametrize(
    ("card", "container", "profile"),
    [
        (A100, ask(3000), "1g.5gb"),
        (A100, ask(4864, 14), "1g.5gb"),
        (A100, ask(4865), "1g.10gb"),
        (A100, ask(3000, 15), "2g.10gb"),
        (A100, ask(9857), "3g.20gb"),
        (A100, ask(1, 43), "4g.20gb"),
        (A100, ask(1, 58), "7g.40gb"),
        (A100, ask(percent=12), "1g.5gb"),
        (A100, ask(percent=50), "3g.20gb"),
        (A100, ask(percent=51), "7g.40gb"),
        (A100, ask(), "7g.40gb"),
        (A30, ask(5836, 25), "1g.6gb"),
        (A30, ask(3000, 26), "2g.12gb"),
        (A30, ask(), "4g.24gb"),
        (H100NVL, ask(11008), "1g.12gb"),
        (H100NVL, ask(11009), "1g.24gb"),
        (GB200, ask(23 * 896), "1g.23gb"),
        (GB200, ask(23 * 896 + 1), "1g.47gb"),
    ],
)
def test_s1_3_a_request_gets_the_smallest_profile_that_holds_memory_and_compute(
    card: str, container: ContainerRequest, profile: str
) -> None:
    answer = placed(fit(request(container), node(partitionable(card))))
    [share] = answer.containers[0].shares
    assert share.mig is not None and share.mig.profile == profile
    kind = MIG_CARDS[card].profile(profile)
    assert (share.mode, share.memory_mib, share.cores) == (MIG, kind.holds_mib, MIG_CARDS[card].cores(kind))
    assert share.exclusive == container.exclusive
    assert not answer.containers[0].oversubscribed and share.physical_mib == 0


def test_instances_go_where_most_of_the_card_stays_usable() -> None:
    taken: dict[str, Taken] = {}
    found = []
    for memory in (3000, 9000, 19000):
        answer = placed(fit(request(ask(memory)), node(partitionable(A100), taken)))
        taken = add(taken, answer)
        found += instances(answer)
    assert found == [("1g.5gb", 6), ("1g.10gb", 4), ("3g.20gb", 0)]


@pytest.mark.parametrize("card", MIG_CARDS)
def test_every_card_takes_as_many_of_each_profile_as_it_has_places(card: str) -> None:
    for profile in MIG_CARDS[card].profiles:
        if profile.base:
            taken, count = {}, 0
            pod = request(ask(profile.holds_mib, MIG_CARDS[card].cores(profile)))
            while isinstance(answer := fit(pod, node(partitionable(card), taken)), PodPlacement):
                taken = add(taken, answer)
                count += 1
            assert count >= MIG_CARDS[card].most(profile)


def there(profile: str, start: int, **rest: bool) -> ExistingMigInstance:
    return ExistingMigInstance(profile=profile, start=start, **rest)


@pytest.mark.parametrize(
    ("instances_there", "start"),
    [
        ((there("1g.5gb", 2),), 2),
        ((there("1g.5gb", 2, used=True),), 3),
        ((there("1g.5gb", 0, made=True), there("1g.5gb", 6, made=True)), 6),
        ((there("3g.20gb", 4),), 3),
        ((there("3g.20gb", 4, made=True),), 6),
        ((there("7g.40gb", 0, made=True),), 6),
    ],
    ids=["free is used", "next to a used one", "of two", "round one that stays", "over an ended one", "all ended"],
)
def test_what_is_there_is_used_again_gone_round_or_gone_over(
    instances_there: tuple[ExistingMigInstance, ...], start: int
) -> None:
    gpus = partitionable(A100, instances=instances_there)
    assert instances(placed(fit(request(ask(3000)), node(gpus)))) == [("1g.5gb", start)]


def test_a_larger_instance_serves_where_only_that_is_free() -> None:
    stays = (*(there("1g.5gb", start, used=True) for start in range(4)), there("3g.20gb", 4))
    assert instances(placed(fit(request(ask(3000)), node(partitionable(A100, instances=stays))))) == [("3g.20gb", 4)]
    used = (*stays[:4], there("3g.20gb", 4, used=True))
    misfit = missed(fit(request(ask(3000)), node(partitionable(A100, instances=used))))
    assert misfit.cause is Cause.PLACE and not misfit.lasting


def test_s1_4_an_idle_gpu_takes_the_preferred_mode_that_holds_the_request() -> None:
    def mode(modes: tuple[Mode, ...], container: ContainerRequest, selector: GpuSelector = GpuSelector()) -> Mode:  # noqa: B008
        answer = placed(fit(request(container, selector=selector), node(partitionable(A30, modes=modes))))
        return answer.containers[0].shares[0].mode

    assert mode((QUOTA, MIG), ask(3000)) is QUOTA and mode((MIG, QUOTA), ask(3000)) is MIG
    assert mode((QUOTA, MIG), ask(3000), ONLY_MIG) is MIG and mode((MIG, QUOTA), ask(3000), ONLY_QUOTA) is QUOTA
    assert mode((MIG, QUOTA), ask(24000)) is QUOTA, "no profile has so much memory"
    assert mode((QUOTA, MIG), ask()) is Mode.WHOLE and mode((MIG,), ask()) is MIG
    assert mode((), ask(3000)) is QUOTA


def test_a_gpu_in_use_stays_in_its_mode() -> None:
    gpus = partitionable(A30, modes=(QUOTA, MIG))
    for first, second in ((ONLY_MIG, ONLY_QUOTA), (ONLY_QUOTA, ONLY_MIG)):
        taken = add({}, placed(fit(request(ask(3000), selector=first), node(gpus))))
        misfit = missed(fit(request(ask(3000), selector=second), node(gpus, taken)))
        assert misfit.cause is Cause.OTHER_MODE and not misfit.lasting
        again = placed(fit(request(ask(3000)), node(gpus, taken)))
        assert (again.containers[0].shares[0].mode is MIG) == (first is ONLY_MIG)
    reported = msgspec.structs.replace(gpus[0], mode=MIG)
    assert placed(fit(request(ask(3000)), node([reported]))).containers[0].shares[0].mode is MIG


@pytest.mark.parametrize(
    ("gpus", "taken", "pod", "sentence"),
    [
        (
            partitionable(A30),
            {},
            request(ask(24000)),
            "needs 24000 MiB; the largest MIG profile, 4g.24gb, has 23344 MiB",
        ),
        (
            partitionable(A30),
            {"GPU-0": in_use(("1g.6gb", 0), ("1g.6gb", 2))},
            request(ask(9000)),
            "no place on the GPU for a MIG instance of 2g.12gb, or a larger one, next to those in use",
        ),
        (
            partitionable(A30, A30),
            {gpu: in_use(("4g.24gb", 0)) for gpu in ("GPU-0", "GPU-1")},
            request(ask(9000)),
            "no place on any of 2 GPUs for a MIG instance of 2g.12gb, or a larger one, next to those in use",
        ),
        (
            partitionable(A30, modes=(QUOTA, MIG)),
            {"GPU-0": Taken(1, 100, 0)},
            request(ask(100), selector=ONLY_MIG),
            "pods keep the GPU in the mode quota; another mode is possible when it is idle",
        ),
        (
            partitionable(A30, modes=(MIG, QUOTA)),
            {"GPU-0": in_use(("1g.6gb", 0))},
            request(ask(24000)),
            "pods keep the GPU in the mode mig; another mode is possible when it is idle",
        ),
        (
            partitionable(A30),
            {},
            request(ask(100), selector=ONLY_QUOTA),
            "the pod accepts the mode quota; this node allows mig",
        ),
        (
            partitionable(A30, modes=()),
            {},
            request(ask(100), selector=ONLY_MIG),
            "the pod accepts the mode mig; this node allows quota",
        ),
        (partitionable(A30), {"GPU-0": in_use(("1g.6gb", 0))}, request(ask()), "whole GPU needed; it is not idle"),
        (
            partitionable(A30, slots=1),
            {"GPU-0": in_use(("1g.6gb", 0))},
            request(ask(100)),
            "all 1 slots are taken",
        ),
    ],
)
def test_the_sentence_says_what_is_missing(
    gpus: tuple[Gpu, ...], taken: dict[str, Taken], pod: PodRequest, sentence: str
) -> None:
    misfit = missed(fit(pod, node(gpus, taken)))
    assert misfit.reason == sentence
    assert misfit.lasting == (not taken)


def test_s1_7_a_custom_geometry_bounds_the_partitions() -> None:
    rule = MigRule(
        models=("A100-40GB",),
        profiles=("2g.10gb", "1g.5gb", "3g.20gb"),
        layouts=((("2g.10gb", 3), ("1g.5gb", 1)), (("3g.20gb", 2),)),
    )
    taken: dict[str, Taken] = {}
    given_out = []
    for memory in (3000, 3000, 9000, 3000):
        answer = fit(request(ask(memory)), NodeState.of("n", partitionable(A100), taken, rules=(rule,)))
        given_out += instances(placed(answer)) if isinstance(answer, PodPlacement) else [("", -1)]
        taken = add(taken, answer) if isinstance(answer, PodPlacement) else taken
    assert [profile for profile, _ in given_out] == ["1g.5gb", "2g.10gb", "2g.10gb", "2g.10gb"]
    state = NodeState.of("n", partitionable(A100), taken, rules=(rule,))
    assert missed(fit(request(ask(3000)), state)).cause is Cause.PLACE
    assert missed(fit(request(ask(20000)), state)).reason.startswith(
        "needs 20000 MiB; the largest MIG profile, 3g.20gb"
    )
    assert isinstance(fit(request(ask(20000)), node(partitionable(A100))), PodPlacement), (
        "other layouts of the card have it"
    )


def test_s1_5_each_pod_finds_a_node_that_can_serve_it_and_every_share_its_own_gpu() -> None:
    two = placed(fit(request(ask(3000, count=2)), node(partitionable(A100, A30))))
    assert instances(two) == [("1g.5gb", 6), ("1g.6gb", 3)] or len(instances(two)) == 2
    mixed = (*partitionable(A100, A100, modes=(QUOTA,)), *partitionable(A30, A30, A30)[2:])
    by_wish = {
        selector: placed(fit(request(ask(3000), selector=selector), node(mixed))).containers[0].shares[0].gpu
        for selector in (ONLY_MIG, ONLY_QUOTA)
    }
    assert by_wish[ONLY_MIG] == "GPU-2" and by_wish[ONLY_QUOTA] in ("GPU-0", "GPU-1")


def test_containers_of_one_pod_have_instances_of_their_own_unless_they_never_meet() -> None:
    early, main, other = ask(9000, name="early", init=True), ask(9000, name="main"), ask(3000, name="other")
    found = instances(placed(fit(request(early, main, other), node(partitionable(A30)))))
    assert found[0] == found[1] and found[2] != found[1]
    held = taken_by(placed(fit(request(early, main, other), node(partitionable(A30)))).containers)["GPU-0"]
    assert held.slots == 2 and len(held.instances) == 2
    sidecar = ask(9000, name="side", init=True, sidecar=True)
    assert missed(fit(request(sidecar, main, other), node(partitionable(A30)))).cause is Cause.TOGETHER


def test_all_shares_of_a_pod_are_in_one_mode() -> None:
    def modes(*gpus: Gpu, containers: tuple[ContainerRequest, ...]) -> set[bool]:
        answer = placed(fit(request(*containers), node(gpus)))
        return {share.mode is MIG for container in answer.containers for share in container.shares}

    first, second, third = partitionable(A30, A30, A30, modes=(MIG,))
    shared = msgspec.structs.replace(second, modes=())
    both = msgspec.structs.replace(third, modes=(QUOTA, MIG))
    assert modes(first, shared, both, containers=(ask(3000, count=2),)) in ({True}, {False})
    assert modes(first, both, containers=(ask(3000, count=2),)) == {True}
    assert modes(shared, both, containers=(ask(3000, name="a"), ask(3000, count=2, name="b"))) == {False}
    misfit = missed(fit(request(ask(3000, count=2)), node([first, shared])))
    assert misfit.reason == "needs 2 GPUs in one mode; 2 fit, but not all in the same"
    assert misfit.cause is Cause.MIXED and misfit.lasting
    assert not missed(fit(request(ask(3000, count=2)), node([both, shared], {"GPU-2": in_use(("1g.6gb", 0))}))).lasting


def test_the_grant_says_which_mode_it_is_and_why() -> None:
    def because(modes: tuple[Mode, ...], container: ContainerRequest, selector: GpuSelector = ANY, n: int = 0) -> str:
        state = node(partitionable(A30, modes=modes), {"GPU-0": Taken(n, 100 * n, 0)})
        return placed(fit(request(container, selector=selector), state)).containers[0].because

    assert because((), ask(3000)) == ""
    assert because((MIG,), ask(3000)) == "mig, 1g.6gb at slice 3: the node allows no other mode"
    assert because((QUOTA, MIG), ask(3000)) == "quota: the node prefers this mode"
    assert because((QUOTA, MIG), ask(3000), ONLY_MIG) == "mig, 1g.6gb at slice 3: the pod accepts no other mode"
    assert because((MIG, QUOTA), ask(24000)) == "quota: the mode mig, which the node prefers, cannot hold the request"
    assert because((MIG, QUOTA), ask()) == "mig, 4g.24gb at slice 0: the node prefers this mode"
    in_it = because((MIG, QUOTA), ask(3000), n=1)
    assert in_it == "quota: the GPU is in this mode already"


MEMORIES = {A30: (1, 5836, 5837, 11672, 20000, 24000), A100: (1, 4864, 9000, 9857, 19968, 40000, 40900)}


@st.composite
def states(draw: st.DrawFn, name: str) -> NodeState:
    """A node of GPUs of both kinds in any state that grants can bring about, and some that others bring about."""
    cards = draw(st.lists(st.sampled_from((A100, A30)), min_size=1, max_size=3))
    gpus, taken = [], {}
    for gpu in partitionable(*cards):
        modes = draw(st.sampled_from([(MIG,), (QUOTA, MIG), (MIG, QUOTA), (QUOTA,), ()]))
        kind = draw(st.sampled_from(["idle", "shared", "partitioned", "reported"]))
        layout = tuple(draw(layouts(gpu.mig_card)))
        standing = [each for each in layout if draw(st.booleans())]
        now = [there(*each, made=draw(st.booleans()), used=draw(st.booleans())) for each in standing]
        gpu = msgspec.structs.replace(
            gpu,
            modes=modes,
            slots=draw(st.sampled_from([1, 10])),
            instances=tuple(now) if kind != "shared" and modes else (),
            mode=draw(st.sampled_from([MIG, QUOTA, Mode.TIMESLICE])) if kind == "reported" else None,
        )
        if kind == "shared":
            taken[gpu.uuid] = Taken(
                1, draw(st.sampled_from([1, 20000])), draw(st.sampled_from([0, 60])), draw(st.booleans())
            )
        if kind == "partitioned" and MIG in modes:
            mine = tuple(sorted(each for each in layout if each not in standing))
            taken[gpu.uuid] = Taken(len(mine), 100, 10, whole=draw(st.booleans()) and bool(mine), instances=mine)
        gpus.append(gpu)
    return node(gpus, taken, name=name)


@st.composite
def layouts(draw: st.DrawFn, card: str) -> list[Placed]:
    found: list[Placed] = []
    for _ in range(draw(st.integers(0, 4))):
        choices = [
            Placed(p.name, start)
            for p in MIG_CARDS[card].profiles
            if p.base
            for start in MIG_CARDS[card].places(p, found)
        ]
        if choices:
            found.append(draw(st.sampled_from(choices)))
    return found


@st.composite
def pods(draw: st.DrawFn) -> PodRequest:
    found = []
    for number in range(draw(st.sampled_from([1, 1, 2, 3]))):
        kind = draw(st.sampled_from(["main", "main", "init", "sidecar"]))
        rest = {"name": f"c{number}", "init": kind != "main", "sidecar": kind == "sidecar"}
        count = draw(st.sampled_from([1, 1, 2]))
        amount = draw(st.sampled_from(["memory", "memory", "percent", "whole"]))
        cores = draw(st.sampled_from([0, 0, 14, 20, 50, 100]))
        if amount == "memory":
            memory = draw(st.sampled_from(sorted({*MEMORIES[A30], *MEMORIES[A100]})))
            found.append(ask(memory, cores, count=count, **rest))
        elif amount == "percent":
            found.append(ask(percent=draw(st.sampled_from([1, 13, 50, 60, 100])), cores=cores, count=count, **rest))
        else:
            found.append(ask(count=count, **rest))
    found.sort(key=lambda container: not container.init)
    modes = draw(st.sampled_from([(), (), (MIG,), (QUOTA,), (MIG, QUOTA)]))
    policy = draw(st.sampled_from(["binpack", "spread"]))
    asked = request(
        *found,
        selector=GpuSelector(modes=modes, idle=draw(st.sampled_from([False, False, True]))),
        gpu_policy=policy,
    )
    memories = st.sampled_from([0, 1, 5836, 5837, 9856, 11672, 20000, 30000, 60000])
    return asked.within(draw(rooms(memories, st.sampled_from([0, 14, 28, 50, 100, 200]))))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(pods(), min_size=1, max_size=2))
def test_a_survey_agrees_with_fit_on_partitionable_gpus(data: st.DataObject, wanted: list[PodRequest]) -> None:
    table = NodeTable()
    surveys = [Survey(alike(each), table) for each in wanted]
    of: dict[str, NodeState] = {}
    for _ in range(data.draw(st.integers(1, 3))):
        for name in data.draw(st.sets(st.sampled_from("abc"), max_size=3)):
            of[name] = data.draw(states(name))
            table.put(of[name])
        for survey, each in zip(surveys, wanted, strict=True):
            check(survey, table, each, of)


def check_gpus(of: tuple[Gpu, ...], running: list[dict[str, Taken]]) -> None:
    """Layouts are legal, no one overlaps, and no GPU is in two modes."""
    for gpu in of:
        here = [taken[gpu.uuid] for taken in running if gpu.uuid in taken]
        partitioned = [each for each in here if each.instances]
        assert partitioned in ([], here), "all are instances, or none is"
        layout = [placed for each in here for placed in each.instances]
        assert len(set(layout)) == len(layout)
        MIG_CARDS[gpu.mig_card].check(sorted(layout, key=lambda p: -MIG_CARDS[gpu.mig_card].profile(p.profile).size))
        assert sum(each.memory_mib for each in here) <= gpu.memory_mib
        assert sum(each.cores for each in here) <= 100
        assert len(here) == 1 or not any(each.whole for each in here)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(MIG_CARDS)), st.data())
def test_grants_and_releases_in_any_order_keep_every_layout_legal_and_no_modes_mixed(
    card: str, data: st.DataObject
) -> None:
    modes = data.draw(st.sampled_from([(MIG,), (QUOTA, MIG), (MIG, QUOTA)]))
    of = partitionable(card, card, modes=modes)
    holds = sorted({p.holds_mib for p in MIG_CARDS[card].profiles})
    running: list[dict[str, Taken]] = []
    for _ in range(data.draw(st.integers(1, 15))):
        if running and data.draw(st.booleans()):
            running.pop(data.draw(st.integers(0, len(running) - 1)))
            continue
        containers = [
            ask(data.draw(st.sampled_from(holds)), data.draw(st.sampled_from([0, 14, 40])), name=f"c{number}")
            for number in range(data.draw(st.integers(1, 3)))
        ]
        selector = GpuSelector(modes=data.draw(st.sampled_from([(), (MIG,), (QUOTA,)])))
        taken: dict[str, Taken] = {}
        for each in running:
            taken = {gpu: taken.get(gpu, NOTHING).plus(each.get(gpu, NOTHING)) for gpu in taken.keys() | each.keys()}
        answer = fit(request(*containers, selector=selector), node(of, taken))
        if isinstance(answer, PodPlacement):
            running.append(taken_by(answer.containers))
        check_gpus(of, running)


def every_layout(card: str) -> Iterator[list[Placed]]:
    """All layouts of plain profiles."""
    known = MIG_CARDS[card]

    def grow(layout: list[Placed], last: tuple[int, str]) -> Iterator[list[Placed]]:
        yield layout
        for profile in known.profiles:
            for start in known.places(profile, layout) if profile.base else ():
                if (start, profile.name) > last:
                    yield from grow([*layout, Placed(profile.name, start)], (start, profile.name))

    return grow([], (-1, ""))


@pytest.mark.parametrize("card", [A100, A30])
def test_an_instance_finds_a_place_in_every_layout_exactly_when_there_is_one(card: str) -> None:
    partitioned, known, count = scheme_of(card, card), MIG_CARDS[card], 0
    assert partitioned is not None
    for layout in every_layout(card):
        room = partitions_of(partitioned, tuple(sorted(layout)), ())
        count += 1
        for number, profile in enumerate(partitioned.profiles):
            free = known.places(profile, layout)
            assert sorted(each.start for each in room.places(profile)) == sorted(free)
            assert bool(room.open >> number & 1) == bool(free)
    assert count == {A100: 297, A30: 27}[card] or count > 20


@pytest.mark.parametrize("card", [A100, A30])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_containers_of_one_pod_fit_a_gpu_exactly_when_some_layout_has_them_all(card: str, data: st.DataObject) -> None:
    known, partitioned = MIG_CARDS[card], scheme_of(card, card)
    assert partitioned is not None
    layout = data.draw(layouts(card))
    wanted = data.draw(st.lists(st.sampled_from([p for p in known.profiles if p.base]), min_size=2, max_size=4))
    containers = [ask(p.holds_mib, known.cores(p), name=f"c{n}") for n, p in enumerate(wanted)]
    taken = {"GPU-0": Taken(len(layout), 100, 0, instances=tuple(sorted(layout)))} if layout else {}
    answer = fit(request(*containers), node(partitionable(card), taken))
    sets = [[p for n, p in enumerate(partitioned.profiles) if partitioned.holding(c) >> n & 1] for c in containers]
    assert isinstance(answer, PodPlacement) == any(possible(card, layout, each) for each in itertools.product(*sets))


def possible(card: str, layout: list[Placed], profiles: tuple[object, ...]) -> bool:
    from collections import Counter

    try:
        MIG_CARDS[card].arrange(Counter(p.name for p in profiles), tuple(layout))  # type: ignore[attr-defined]
    except Exception:
        return False
    return True


def test_columns_name_the_schemes() -> None:
    table = NodeTable()
    table.put(node(partitionable(A100, A30)))
    columns = table.columns(np.array([0]))
    assert columns.scheme[0].tolist() == [1, 2] and (columns.open[0] > 0).all()
