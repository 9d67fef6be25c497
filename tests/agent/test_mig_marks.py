"""S2.3: every label that depends on how GPUs are cut and shared, in every mode of a node with two A100 of 40 GB."""

import re

import pytest
from msgspec import structs

from lamina.agent.marks import features, mig_features
from lamina.agent.marks.features import Sharing as Whole
from lamina.agent.marks.features import labels
from lamina.agent.marks.mig_features import OF_PROFILES, Mig
from lamina.agent.marks.wanted import Marks, Seen, metadata_patch
from lamina.agent.mig.offering import MigDevice
from lamina.model.mig_cards import MIG_CARDS
from lamina.model.sharing import Replicated, Sharing, Strategy
from lamina.ports.nvml import GpuFacts, MigInstance
from tests.agent.test_marks import A100, NODE_PAGE, SYSTEM

CARD = MIG_CARDS["A100-40GB"]
TWO = (A100, structs.replace(A100, uuid="GPU-b", index=1))
PRODUCT = "NVIDIA-A100-PCIE-40GB"
FIVE = {
    "product": f"{PRODUCT}-MIG-1g.5gb", "count": "14", "replicas": "1", "sharing-strategy": "none", "memory": "4864",
    "multiprocessors": "14", "slices.gi": "1", "slices.ci": "1", "engines.copy": "1", "engines.decoder": "0",
    "engines.encoder": "0", "engines.jpeg": "0", "engines.ofa": "0",
}  # fmt: skip
HALF = {
    "product": f"{PRODUCT}-MIG-3g.20gb", "count": "2", "replicas": "1", "sharing-strategy": "none", "memory": "19968",
    "multiprocessors": "42", "slices.gi": "3", "slices.ci": "3", "engines.copy": "3", "engines.decoder": "2",
    "engines.encoder": "0", "engines.jpeg": "0", "engines.ofa": "0",
}  # fmt: skip
GPU = {"product": PRODUCT, "count": "2", "replicas": "1", "sharing-strategy": "none", "memory": "40960"}
INVALID = GPU | {"product": f"{PRODUCT}-MIG-INVALID", "count": "0", "replicas": "0", "memory": "0"}
CUT = GPU | {"replicas": "0"}


def devices(*profiles: str, gpu: int = 0) -> tuple[MigDevice, ...]:
    found = (MigInstance(n, name, 0, f"MIG-{gpu}-{n}", n) for n, name in enumerate(profiles))
    return tuple(MigDevice(TWO[gpu].uuid, each, CARD.profile(each.profile)) for each in found)


def both(*profiles: str) -> tuple[MigDevice, ...]:
    return devices(*profiles) + devices(*profiles, gpu=1)


def cut(*enabled: bool) -> tuple[GpuFacts, ...]:
    return tuple(structs.replace(one, mig_enabled=on) for one, on in zip(TWO, enabled, strict=True))


def twice(name: str, *, rename: bool = False) -> Sharing:
    offered = name + (".shared" if rename else "")
    return Sharing(strategy=Strategy.TIME_SLICING, resources=(Replicated(name=name, offered=offered, replicas=2),))


def sliced(product: str, of: dict[str, str], *, suffix: str = "-SHARED") -> dict[str, str]:
    return of | {"product": f"{product}{suffix}", "replicas": "2", "sharing-strategy": "time-slicing"}


ALL, HALVES = both(*["1g.5gb"] * 7), devices("3g.20gb", "3g.20gb")
MODES: dict[str, tuple[tuple[GpuFacts, ...], Whole, Mig, dict[str, dict[str, str]]]] = {
    "grants, or whole": (cut(False, False), Whole(), Mig(), {"gpu": GPU}),
    "time-slicing": (
        cut(False, False), Whole("time-slicing", 2), Mig(), {"gpu": sliced(PRODUCT, GPU)},
    ),
    "time-slicing, renamed": (
        cut(False, False), Whole("time-slicing", 2, renamed=True), Mig(), {"gpu": sliced(PRODUCT, GPU, suffix="")},
    ),
    "MPS": (
        cut(False, False), Whole("mps", 2, renamed=True), Mig(),
        {"gpu": GPU | {"replicas": "2", "sharing-strategy": "mps"}},
    ),
    "none, cut": (cut(True, True), Whole(), Mig("none", ALL), {"gpu": CUT}),
    "mixed, nothing cut": (cut(False, False), Whole(), Mig("mixed"), {"gpu": GPU}),
    "mixed, one cut": (cut(True, False), Whole(), Mig("mixed", HALVES), {"gpu": GPU, "mig-3g.20gb": HALF}),
    "mixed, one cut beside time-slicing": (
        cut(True, False), Whole("time-slicing", 2), Mig("mixed", HALVES, twice("nvidia.com/gpu")),
        {"gpu": sliced(PRODUCT, GPU), "mig-3g.20gb": HALF},
    ),
    "mixed, all cut": (cut(True, True), Whole(), Mig("mixed", ALL), {"gpu": CUT, "mig-1g.5gb": FIVE}),
    "mixed, media": (
        cut(True, True), Whole(), Mig("mixed", devices("1g.5gb+me")),
        {"gpu": CUT, "mig-1g.5gb.me": FIVE | {
            "product": f"{PRODUCT}-MIG-1g.5gbme", "count": "1", "engines.decoder": "1", "engines.jpeg": "1",
            "engines.ofa": "1"}},
    ),
    "mixed, enabled and empty": (cut(True, True), Whole(), Mig("mixed"), {"gpu": CUT}),
    "mixed, in replicas": (
        cut(True, True), Whole(), Mig("mixed", HALVES, twice("nvidia.com/mig-3g.20gb")),
        {"gpu": CUT, "mig-3g.20gb": sliced(HALF["product"], HALF)},
    ),
    "mixed, in replicas, renamed": (
        cut(True, True), Whole(), Mig("mixed", HALVES, twice("nvidia.com/mig-3g.20gb", rename=True)),
        {"gpu": CUT, "mig-3g.20gb": sliced(HALF["product"], HALF, suffix="")},
    ),
    "single, nothing cut": (cut(False, False), Whole(), Mig("single"), {"gpu": GPU}),
    "single": (cut(True, True), Whole(), Mig("single", ALL), {"gpu": FIVE}),
    "single, in replicas": (
        cut(True, True), Whole(), Mig("single", ALL, twice("nvidia.com/gpu")),
        {"gpu": sliced(FIVE["product"], FIVE)},
    ),
    "single, in replicas, renamed": (
        cut(True, True), Whole(), Mig("single", ALL, twice("nvidia.com/gpu", rename=True)),
        {"gpu": sliced(FIVE["product"], FIVE, suffix="")},
    ),
    "single, one cut": (cut(True, False), Whole(), Mig("single", HALVES), {"gpu": INVALID}),
    "single, one empty": (cut(True, True), Whole(), Mig("single", HALVES), {"gpu": INVALID}),
    "single, unequal": (cut(True, True), Whole(), Mig("single", both("1g.5gb", "3g.20gb")), {"gpu": INVALID}),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_s2_3_labels_of_resources_in_every_mode(mode: str) -> None:
    facts, shared, mig, expected = MODES[mode]
    found = labels(facts, SYSTEM, shared, mig)
    names = {f"nvidia.com/gpu.{name}" for name in OF_PROFILES} | set(filter(mig_features.kept, found))
    told = {f"nvidia.com/{of}.{name}": text for of, each in expected.items() for name, text in each.items()}
    assert {name: text for name, text in found.items() if name in names} == told
    assert found.get("nvidia.com/mig.strategy") == (None if mig.strategy == "none" else mig.strategy)
    assert all(map(features.kept, found)), "every label is taken back with the others"
    common = found.keys() - told.keys() - {"nvidia.com/mig.strategy"}
    assert common == features.LABELS - {
        f"nvidia.com/{name}"
        for name in ("gfd.timestamp", "gpu.clique", "mig.strategy", *(f"gpu.{each}" for each in OF_PROFILES))
    }, "what does not depend on the mode is always there"
    assert all(re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", text) for text in found.values())


def test_the_clique_is_told_where_the_gpus_agree_on_one() -> None:
    fabric = "6a1c30c8-2a0e-4cb1-9d2c-0d8ffb0a3ee3.4"
    one, other = (structs.replace(each, fabric=fabric) for each in TWO)
    assert labels((one, other), SYSTEM, Whole())["nvidia.com/gpu.clique"] == fabric
    assert "nvidia.com/gpu.clique" not in labels(TWO, SYSTEM, Whole())
    assert "nvidia.com/gpu.clique" not in labels((one, structs.replace(other, fabric="b.1")), SYSTEM, Whole())


def test_labels_of_profiles_that_are_gone_are_removed_and_those_of_others_left() -> None:
    there = {"nvidia.com/mig-3g.20gb.count": "2", "nvidia.com/mig-1g.5gb.me.engines.ofa": "1",
             "nvidia.com/mig.config": "all-disabled", "nvidia.com/mig-1g.5gb.own": "x"}  # fmt: skip
    patch = metadata_patch(Marks(), Seen(uid="u", labels=there), labelling=True, now=0)
    assert patch is not None
    assert patch["metadata"]["labels"] == dict.fromkeys(list(there)[:2])


def test_without_a_timestamp_where_nvidias_configuration_wants_none() -> None:
    marks = Marks(labels={"nvidia.com/gpu.count": "2"})
    patch = metadata_patch(marks, Seen(uid="u"), labelling=True, now=7, stamped=False)
    assert patch is not None
    assert patch["metadata"]["labels"] == {"nvidia.com/gpu.count": "2"}
    stamped = Seen(uid="u", labels={"nvidia.com/gpu.count": "2", "nvidia.com/gfd.timestamp": "7"})
    patch = metadata_patch(marks, stamped, labelling=True, now=7, stamped=False)
    assert patch is not None
    assert patch["metadata"]["labels"] == {"nvidia.com/gfd.timestamp": None}


def test_the_page_lists_the_labels_of_profiles() -> None:
    assert all(f"`{name}`" in NODE_PAGE for name in OF_PROFILES)
