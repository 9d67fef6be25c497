"""S2.3: every label that depends on how GPUs are cut and shared, in every mode of a node with two A100 of 40 GB."""

import re

import pytest
from msgspec import structs

from lamina.core.gpu_facts import MigInstanceFacts
from lamina.core.gpus import NativeResource
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MigDevice
from lamina.core.sharing import ReplicaSharing, Replicated, Strategy
from lamina.dialects.metadata import NodeFacts
from lamina.dialects.nvidia import feature_labels
from lamina.dialects.nvidia.feature_labels import labels
from lamina.dialects.nvidia.node_gpus import OF_PROFILES, is_profile_label
from tests.dialects.nodes import A100, NODE_PAGE, described

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
PARTITIONED = GPU | {"replicas": "0"}


def devices(*profiles: str, gpu: int = 0) -> tuple[MigDevice, ...]:
    found = (MigInstanceFacts(n, name, 0, f"MIG-{gpu}-{n}", n) for n, name in enumerate(profiles))
    return tuple(MigDevice(TWO[gpu].uuid, each, CARD.profile(each.profile)) for each in found)


def both(*profiles: str) -> tuple[MigDevice, ...]:
    return devices(*profiles) + devices(*profiles, gpu=1)


def node(
    *partitioned: bool,
    strategy: str = "none",
    devices: tuple[MigDevice, ...] = (),
    sharing: ReplicaSharing = ReplicaSharing(),  # noqa: B008
    offered: tuple[NativeResource, ...] = (),
) -> NodeFacts:
    """Both GPUs, and which of them are partitioned."""
    facts = (structs.replace(one, mig_enabled=on) for one, on in zip(TWO, partitioned, strict=True))
    return described(*facts, mig_strategy=strategy, mig_devices=devices, sharing=sharing, offered=offered)


def twice(name: str, *, rename: bool = False) -> ReplicaSharing:
    offered = name + (".shared" if rename else "")
    return ReplicaSharing(
        strategy=Strategy.TIME_SLICING, resources=(Replicated(name=name, offered=offered, replicas=2),)
    )


def sliced(product: str, of: dict[str, str], *, suffix: str = "-SHARED") -> dict[str, str]:
    return of | {"product": f"{product}{suffix}", "replicas": "2", "sharing-strategy": "time-slicing"}


ALL, HALVES = both(*["1g.5gb"] * 7), devices("3g.20gb", "3g.20gb")
SLICES = (NativeResource("nvidia.com/gpu", 4, 2, Strategy.TIME_SLICING),)
RENAMED = (NativeResource("nvidia.com/gpu.shared", 4, 2, Strategy.TIME_SLICING),)
CLIENTS = (NativeResource("nvidia.com/gpu.shared", 4, 2, Strategy.MPS),)
MODES: dict[str, tuple[NodeFacts, dict[str, dict[str, str]]]] = {
    "grants, or whole": (node(False, False), {"gpu": GPU}),
    "time-slicing": (node(False, False, offered=SLICES), {"gpu": sliced(PRODUCT, GPU)}),
    "time-slicing, renamed": (node(False, False, offered=RENAMED), {"gpu": sliced(PRODUCT, GPU, suffix="")}),
    "MPS": (
        node(False, False, offered=CLIENTS), {"gpu": GPU | {"replicas": "2", "sharing-strategy": "mps"}},
    ),
    "none, partitioned": (node(True, True, strategy="none", devices=ALL), {"gpu": PARTITIONED}),
    "mixed, nothing partitioned": (node(False, False, strategy="mixed"), {"gpu": GPU}),
    "mixed, one partitioned": (
        node(True, False, strategy="mixed", devices=HALVES), {"gpu": GPU, "mig-3g.20gb": HALF},
    ),
    "mixed, one partitioned next to time-slicing": (
        node(True, False, strategy="mixed", devices=HALVES, sharing=twice("nvidia.com/gpu"), offered=SLICES),
        {"gpu": sliced(PRODUCT, GPU), "mig-3g.20gb": HALF},
    ),
    "mixed, all partitioned": (
        node(True, True, strategy="mixed", devices=ALL), {"gpu": PARTITIONED, "mig-1g.5gb": FIVE},
    ),
    "mixed, devices of a GPU that is not offered": (
        structs.replace(
            node(True, True, strategy="mixed", devices=both("3g.20gb")), gpus=node(True, True).gpus[:1]
        ),
        {"gpu": PARTITIONED | {"count": "1"}, "mig-3g.20gb": HALF | {"count": "1"}},
    ),
    "mixed, media": (
        node(True, True, strategy="mixed", devices=devices("1g.5gb+me")),
        {"gpu": PARTITIONED, "mig-1g.5gb.me": FIVE | {
            "product": f"{PRODUCT}-MIG-1g.5gbme", "count": "1", "engines.decoder": "1", "engines.jpeg": "1",
            "engines.ofa": "1"}},
    ),
    "mixed, enabled and empty": (node(True, True, strategy="mixed"), {"gpu": PARTITIONED}),
    "mixed, in replicas": (
        node(True, True, strategy="mixed", devices=HALVES, sharing=twice("nvidia.com/mig-3g.20gb")),
        {"gpu": PARTITIONED, "mig-3g.20gb": sliced(HALF["product"], HALF)},
    ),
    "mixed, in replicas, renamed": (
        node(True, True, strategy="mixed", devices=HALVES, sharing=twice("nvidia.com/mig-3g.20gb", rename=True)),
        {"gpu": PARTITIONED, "mig-3g.20gb": sliced(HALF["product"], HALF, suffix="")},
    ),
    "single, nothing partitioned": (node(False, False, strategy="single"), {"gpu": GPU}),
    "single": (node(True, True, strategy="single", devices=ALL), {"gpu": FIVE}),
    "single, in replicas": (
        node(True, True, strategy="single", devices=ALL, sharing=twice("nvidia.com/gpu")),
        {"gpu": sliced(FIVE["product"], FIVE)},
    ),
    "single, in replicas, renamed": (
        node(True, True, strategy="single", devices=ALL, sharing=twice("nvidia.com/gpu", rename=True)),
        {"gpu": sliced(FIVE["product"], FIVE, suffix="")},
    ),
    "single, one partitioned": (node(True, False, strategy="single", devices=HALVES), {"gpu": INVALID}),
    "single, one empty": (node(True, True, strategy="single", devices=HALVES), {"gpu": INVALID}),
    "single, unequal": (
        node(True, True, strategy="single", devices=both("1g.5gb", "3g.20gb")), {"gpu": INVALID},
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_s2_3_labels_of_resources_in_every_mode(mode: str) -> None:
    facts, expected = MODES[mode]
    found, strategy = labels(facts), facts.mig_strategy
    names = {f"nvidia.com/gpu.{name}" for name in OF_PROFILES} | set(filter(is_profile_label, found))
    listed = {f"nvidia.com/{of}.{name}": text for of, each in expected.items() for name, text in each.items()}
    assert {name: text for name, text in found.items() if name in names} == listed
    assert found.get("nvidia.com/mig.strategy") == (None if strategy == "none" else strategy)
    assert all(map(feature_labels.is_feature_label, found)), "every label is removed with the others"
    common = found.keys() - listed.keys() - {"nvidia.com/mig.strategy"}
    assert common == feature_labels.LABELS - {
        f"nvidia.com/{name}"
        for name in ("gfd.timestamp", "gpu.clique", "mig.strategy", *(f"gpu.{each}" for each in OF_PROFILES))
    }, "what does not depend on the mode is always there"
    assert all(re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", text) for text in found.values())


@pytest.mark.parametrize(
    ("key", "owned"),
    [
        ("nvidia.com/mig-1g.5gb.count", True), ("nvidia.com/mig-1g.5gb.me.engines.ofa", True),
        ("nvidia.com/mig-1g.5gb-me.product", True), ("nvidia.com/mig.strategy", False),
        ("nvidia.com/mig.config", False), ("nvidia.com/mig-1g.5gb.own", False), ("nvidia.com/mig-1g.count", False),
        ("nvidia.com/mig-1g.5gb", False), ("example.com/mig-1g.5gb.count", False),
    ],
)  # fmt: skip
def test_which_labels_are_of_profiles(key: str, owned: bool) -> None:
    assert is_profile_label(key) == owned


def test_the_page_lists_the_labels_of_profiles() -> None:
    assert all(f"`{name}`" in NODE_PAGE for name in OF_PROFILES)
