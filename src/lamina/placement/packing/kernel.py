"""The packing core in C, called over arrays: how good nodes are, and what stays unused of a GPU.

The library's path is handed in (`lamina.native.path(LIBRARY)`), since this package opens no files of its own.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_double, c_int32, c_int64, c_void_p
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.cluster import Ask, Cluster, Longs
from lamina.placement.packing.coefficients import Coefficients
from lamina.placement.packing.mix import Floats

LIBRARY = "placement/liblamina_packing.so"
_MAX_ASKS = 1024
"""Requests that are kept in the core's terms, which is twice as many as levels are kept of."""


class _Cluster(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("nodes", "gpus")),
        *((name, c_void_p) for name in ("cpu", "memory", "kind", "gpu_memory", "gpu_cores", "slots")),
        ("kinds", c_int64),
        *((name, c_void_p) for name in ("full_memory", "full_cores")),
    )


class _Policy(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("classes", "shares", "hosts", "hinges")),
        *(
            (name, c_void_p)
            for name in ("host_cpu", "host_memory", "one_weight", "fill_weight", "class_share", "class_host")
        ),
        *((name, c_void_p) for name in ("share_count", "share_cores", "share_memory", "share_amount")),
        *((name, c_double) for name in ("memory_part", "cores_part")),
        *((name, c_void_p) for name in ("gpu_price", "cpu_price", "hinge_gpu", "hinge_cpu", "hinge_weight")),
        ("remainder", c_void_p),
        ("unpaired", c_double),
        ("idle", c_void_p),
        ("all_idle", c_double),
        ("levels", c_void_p),
        ("level_count", c_int64),
        ("step", c_double),
    )


class _Ask(Structure):
    _fields_ = (
        ("cpu", c_int64),
        ("memory", c_int64),
        ("count", c_int32),
        ("gpu_cores", c_int32),
        ("gpu_memory", c_void_p),
    )


class Kernel:
    """One cluster and one policy, bound to the library. The cluster's arrays are read at each call."""

    def __init__(self, library: ctypes.CDLL, cluster: Cluster, policy: Coefficients) -> None:
        self._call = library.packing_levels
        self._call.restype = ctypes.c_int
        pointers = POINTER(_Cluster), POINTER(_Policy), POINTER(_Ask), c_void_p, c_int64, c_void_p, c_void_p
        self._call.argtypes = list(pointers)
        self.policy = policy
        self._held = (cluster, policy)
        self._cluster = _cluster(cluster)
        self._policy = _policy(policy)

    def levels(
        self, ask: Ask, rows: Longs, level: Floats, chosen: NDArray[np.uint64], count: int | None = None
    ) -> None:
        """Fill, for each of the first `count` rows, how good the best placement there is and its GPUs as bits.

        The higher a level the better; -inf where the pod does not fit. Levels of one pod compare between nodes.
        Arrays are int64, float64 and uint64, as long as `rows`.
        """
        held = _ask(ask)
        n = len(rows) if count is None else count
        if self._call(self._cluster, self._policy, held[0], rows.ctypes.data, n, level.ctypes.data, chosen.ctypes.data):
            raise ValueError("a row is out of range, or the policy has more classes or shares than the core takes")


def remainders(library: ctypes.CDLL, chance: Floats, offers: Sequence[int]) -> Floats:
    """What stays unused of a GPU by the part of it that is free: (offers, points).

    A pod takes s of the points with chance[s]; so many of them as `offers` says, ascending, are offered to the GPU one
    by one, and each is put there or not, whichever leaves less.
    """
    found, scratch = np.zeros((len(offers), len(chance))), np.zeros(len(chance))
    counts = np.array(offers, np.int64)
    call = library.packing_remainders
    call.restype, call.argtypes = None, [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p]
    call(chance.ctypes.data, len(chance), counts.ctypes.data, len(counts), found.ctypes.data, scratch.ctypes.data)
    return found


def _fields(layout: type[Structure]) -> list[tuple[str, type]]:
    return [(field[0], field[1]) for field in layout._fields_]


@lru_cache(_MAX_ASKS)
def _ask(ask: Ask) -> tuple[_Ask, NDArray[np.int32]]:
    """Raises ValueError for amounts out of range, of which ctypes would silently keep the low bits."""
    longs, ints = (ask.cpu, ask.memory), (ask.gpus, ask.gpu_cores, *ask.gpu_memory)
    if not all(-(2**63) <= amount < 2**63 for amount in longs) or not all(
        -(2**31) <= amount < 2**31 for amount in ints
    ):
        raise ValueError(f"the packing core cannot hold the amounts of {ask}")
    wanted = np.array(ask.gpu_memory, np.int32)
    return _Ask(ask.cpu, ask.memory, ask.gpus, ask.gpu_cores, wanted.ctypes.data), wanted


def _cluster(cluster: Cluster) -> _Cluster:
    nodes, gpus = cluster.kind.shape
    made = _Cluster(nodes=nodes, gpus=gpus, kinds=len(cluster.full_memory))
    for name, kind in _fields(_Cluster):
        if kind is c_void_p:
            array, wanted = getattr(cluster, name), np.int64 if name in ("cpu", "memory") else np.int32
            if array.dtype != wanted or not array.flags.c_contiguous:
                raise TypeError(f"the packing core needs {name} as {wanted.__name__} in C order, not {array.dtype}")
            setattr(made, name, array.ctypes.data)
    if min(cluster.full_memory.min(initial=1), cluster.full_cores.min(initial=1)) < 1:
        raise ValueError("a kind of GPU has no memory or no cores; each needs at least 1")
    if cluster.kind.max(initial=-1) >= len(cluster.full_memory):
        raise ValueError(f"a GPU is of kind {cluster.kind.max()}, but there are {len(cluster.full_memory)} kinds")
    return made


def _policy(policy: Coefficients) -> _Policy:
    made = _Policy(
        classes=len(policy.class_share),
        shares=len(policy.share_count),
        hosts=len(policy.host_cpu),
        hinges=len(policy.hinge_weight),
    )
    made.memory_part, made.cores_part = policy.parts
    made.unpaired, made.all_idle, made.step = policy.unpaired, policy.all_idle, policy.step
    made.level_count = len(policy.levels)
    for name, kind in _fields(_Policy):
        if kind is c_void_p:
            setattr(made, name, getattr(policy, name).ctypes.data)
    return made
