"""MIG instances on A100-40GB cards: layouts valued once, against first fit, best fit, greedy least fragmentation and,
on a few cards, the most that could have been placed (a small integer programme over all full layouts).

Profiles come at random: of 20, eight 1g.5gb, one 1g.10gb, four 2g.10gb, three 3g.20gb, two 4g.20gb and two 7g.40gb.
With churn each lives for a random time, so long that 110 % of the slices would be in use. Greedy least fragmentation
follows arXiv 2511.18906: an instance goes where the fewest places of other profiles are lost although enough slices
are free; it knows no mix.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table

from bench.measures import Report
from bench.packing.studies.study import FIRST_SEED
from bench.packing.traces import Nodes, Pod
from lamina.core.mig import MigCard
from lamina.core.mig_cards import MIG_CARDS
from lamina.placement.mig.layouts import Layouts

CARD = MIG_CARDS["A100-40GB"]
MIX = {"1g.5gb": 8, "1g.10gb": 1, "2g.10gb": 4, "3g.20gb": 3, "4g.20gb": 2, "7g.40gb": 2}
GPUS, FEW = 64, 4
LOAD = 1.1

Choose = Callable[[np.ndarray, str], tuple[int, int] | None]


def first_fit(masks: np.ndarray, profile: str) -> tuple[int, int] | None:
    """The first GPU and the first place."""
    return _least(masks, profile, lambda after: np.zeros(after.shape))


def best_fit(masks: np.ndarray, profile: str) -> tuple[int, int] | None:
    """The fullest GPU and its first place."""
    return _least(masks, profile, lambda after: CARD.slices - np.bitwise_count(after).astype(float))


def least_fragmentation(masks: np.ndarray, profile: str) -> tuple[int, int] | None:
    """The place that blocks least of what would fit by size."""
    return _least(masks, profile, lambda after: BLOCKED[after] - BLOCKED[masks][:, None])


def _least(masks: np.ndarray, profile: str, cost: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int] | None:
    places = np.array(CARD.profile(profile).masks)
    after = masks[:, None] | places
    costs = np.where(masks[:, None] & places, np.inf, cost(after))
    gpu, place = np.unravel_index(int(costs.argmin()), costs.shape)
    return (int(gpu), CARD.profile(profile).starts[place]) if costs[gpu, place] < np.inf else None


def _blocked(card: MigCard) -> np.ndarray:
    """For each layout the size of all places that are not free though as many slices are."""
    found = np.zeros(1 << card.slices)
    for layout in range(len(found)):
        free = card.slices - layout.bit_count()
        for profile in card.profiles:
            if profile.size <= free:
                found[layout] += sum(profile.size for mask in profile.masks if mask & layout)
    return found


BLOCKED = _blocked(CARD)


def arrive(choose: Choose, wanted: Sequence[str], gpus: int) -> float:
    """The part of the slices in use after all have come and none has left."""
    masks = np.zeros(gpus, np.int64)
    for name in wanted:
        found = choose(masks, name)
        if found is not None:
            masks[found[0]] |= ((1 << CARD.profile(name).size) - 1) << found[1]
    return float(np.bitwise_count(masks).sum()) / (gpus * CARD.slices)


def churn(choose: Choose, random: np.random.Generator, gpus: int, arrivals: int = 6000) -> float:
    """The part of the slices in use, averaged over the second half of the arrivals."""
    masks, now, held, since = np.zeros(gpus, np.int64), 0.0, 0.0, 0.0
    size = np.average([CARD.profile(name).size for name in MIX], weights=list(MIX.values()))
    pause = float(size) / (LOAD * gpus * CARD.slices)
    leaving: list[tuple[float, int, int]] = []
    for number, name in enumerate(draw(random, arrivals)):
        come = now + float(random.exponential(pause))
        life = float(random.exponential(1.0))
        while leaving and leaving[0][0] <= come:
            time, gpu, mask = heapq.heappop(leaving)
            held += (time - now) * int(np.bitwise_count(masks).sum()) * (number > arrivals // 2)
            now = time
            masks[gpu] &= ~mask
        held += (come - now) * int(np.bitwise_count(masks).sum()) * (number > arrivals // 2)
        now = come
        since = now if number == arrivals // 2 else since
        found = choose(masks, name)
        if found is not None:
            mask = ((1 << CARD.profile(name).size) - 1) << found[1]
            masks[found[0]] |= mask
            heapq.heappush(leaving, (come + life, found[0], mask))
    return held / (now - since) / (gpus * CARD.slices)


def draw(random: np.random.Generator, count: int) -> list[str]:
    return list(random.choice(list(MIX), count, p=np.array(list(MIX.values())) / sum(MIX.values())))


def requested(random: np.random.Generator, gpus: int, part: float) -> list[str]:
    """Instances until they ask this part of the slices."""
    wanted, total = [], 0
    while total < part * gpus * CARD.slices:
        wanted += draw(random, 1)
        total += CARD.profile(wanted[-1]).size
    return wanted


def most_possible(card: MigCard, wanted: Sequence[str], gpus: int) -> float:
    """The largest part of the slices that some of these instances could use together. Needs highspy."""
    import highspy  # heavy, and of use here only

    layouts = [Counter(layout) for layout in full_layouts(card)]
    sizes = {profile.name: profile.size for profile in card.profiles}
    solver = highspy.Highs()
    solver.silent()
    uses = [solver.addIntegral(0, gpus) for _ in layouts]
    placed = {name: solver.addIntegral(0, n) for name, n in Counter(wanted).items()}
    solver.addConstr(sum(uses) <= gpus)
    for name, count in placed.items():
        solver.addConstr(count <= sum(layout[name] * use for layout, use in zip(layouts, uses, strict=True)))
    solver.maximize(sum(sizes[name] * count for name, count in placed.items()))
    return float(solver.getObjectiveValue()) / (gpus * card.slices)


def full_layouts(card: MigCard) -> set[tuple[str, ...]]:
    """All sets of instances to which none can be added, as sorted names."""
    found: set[tuple[str, ...]] = set()
    seen: set[tuple[int, tuple[str, ...]]] = set()
    stack: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while stack:
        layout, names = stack.pop()
        options = [(m, p.name) for p in card.profiles for m in p.masks if not m & layout]
        if not options:
            found.add(names)
        for mask, name in options:
            state = (layout | mask, tuple(sorted((*names, name))))
            if state not in seen:
                seen.add(state)
                stack.append(state)
    return found


def run(report: Report, nodes: Nodes, pods: Sequence[Pod], seeds: int) -> Table:
    """All choosers, alone and against the most possible."""
    layouts = Layouts(CARD, MIX)
    choosers: dict[str, Choose] = {
        "first fit": first_fit,
        "best fit": best_fit,
        "least fragmentation": least_fragmentation,
        "ours": layouts.best,
    }
    table = Table(title="MIG instances: percent of slices stranded", box=None, pad_edge=False)
    for heading in ("policy", f"{GPUS} cards, 100 %", "130 %", "churn", f"{FEW} cards, 100 %"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    few = [requested(np.random.default_rng(FIRST_SEED + i), FEW, 1.0) for i in range(100 * seeds)]
    churning = {}
    for name, choose in choosers.items():
        runs = [np.random.default_rng(FIRST_SEED + i) for i in range(seeds)]
        used = [[arrive(choose, requested(random, GPUS, part), GPUS) for random in runs] for part in (1.0, 1.3)]
        used += [[churn(choose, random, GPUS) for random in runs], [arrive(choose, wanted, FEW) for wanted in few]]
        stranded = [100 - 100 * float(np.mean(values)) for values in used]
        table.add_row(name, *[f"{value:.2f}" for value in stranded])
        churning[name] = stranded[2]
    report.add("stranded-mig-churn", "%", ours=churning["ours"], native=churning["least fragmentation"])
    try:
        best = f"{100 - 100 * float(np.mean([most_possible(CARD, wanted, FEW) for wanted in few])):.2f}"
    except ModuleNotFoundError:
        best = "needs highspy"
    table.add_row("most possible, all known before", "", "", "", best)
    return table
