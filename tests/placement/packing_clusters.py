"""Small clusters and mixes drawn at random for the packing tests, integers throughout."""

import ctypes

import numpy as np
from hypothesis import strategies as st

from lamina import native
from lamina.placement.packing import LIBRARY, REFUSED, Ask, Cluster
from lamina.placement.packing.mix import Mix
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import Weights

CARDS = ((16_384, 100), (24_258, 100), (81_920, 200))
"""Memory and compute of the kinds: the last is scaled to twice its compute."""


def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(native.path(LIBRARY)))


@st.composite
def asks(draw: st.DrawFn, most: int = 3) -> Ask:
    count = draw(st.integers(0, most))
    if not count:
        return Ask(draw(st.integers(0, 20_000)), draw(st.integers(0, 90_000)), 0, (0,) * len(CARDS), 0)
    if draw(st.booleans()):
        part = draw(st.sampled_from((10, 25, 33, 50, 81, 100)))
        memory = [card[0] * part // 100 for card in CARDS]
    else:
        memory = [draw(st.sampled_from((0, 1, 4096, 8192, 16_384, 20_000)))] * len(CARDS)
    refused = draw(st.sets(st.integers(0, len(CARDS) - 1), max_size=2))
    wanted = tuple(REFUSED if kind in refused else amount for kind, amount in enumerate(memory))
    cores = draw(st.sampled_from((0, 10, 30, 50, 100)))
    return Ask(draw(st.integers(0, 20_000)), draw(st.integers(0, 90_000)), count, wanted, cores)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes, gpus = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    kind = np.full((nodes, gpus), -1, np.int32)
    memory, cores, slots = (np.zeros((nodes, gpus), np.int32) for _ in range(3))
    for row in range(nodes):
        for gpu in range(draw(st.integers(0, gpus))):
            which = draw(st.integers(0, len(CARDS) - 1))
            kind[row, gpu] = which
            used = draw(st.sampled_from((0, 0, 0.3, 0.5, 0.81, 1, 1.2, -0.1)))
            memory[row, gpu] = int(CARDS[which][0] * (1 - used))
            cores[row, gpu] = CARDS[which][1] - draw(st.sampled_from((0, int(CARDS[which][1] * used))))
            slots[row, gpu] = draw(st.integers(0, 4))
    return Cluster(
        cpu=np.array([draw(st.integers(0, 96_000)) for _ in range(nodes)], np.int64),
        memory=np.array([draw(st.integers(0, 400_000)) for _ in range(nodes)], np.int64),
        kind=kind,
        gpu_memory=memory,
        gpu_cores=cores,
        slots=slots,
        full_memory=np.array([card[0] for card in CARDS], np.int32),
        full_cores=np.array([card[1] for card in CARDS], np.int32),
    )


def mix_of(requests: dict[Ask, int], cluster: Cluster) -> Mix:
    return Mix.of(requests, cluster.full_memory, cluster.full_cores, cluster.supply())


def mixes() -> st.SearchStrategy[dict[Ask, int]]:
    usual = asks().filter(lambda ask: ask.gpus > 0)
    return st.dictionaries(usual, st.integers(1, 50), min_size=1, max_size=6)


def weights() -> st.SearchStrategy[Weights]:
    names = [name for name in Weights.__dataclass_fields__ if name != "step"]
    values = st.floats(-2, 2, allow_nan=False)
    drawn = st.fixed_dictionaries(dict.fromkeys(names, values) | {"step": st.floats(0.001, 0.5)})
    return st.one_of(st.just(TRAINED), drawn.map(lambda fields: Weights(**fields)))
