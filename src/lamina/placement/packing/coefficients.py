"""The numbers that the packing core works with: what each leftover is worth, for one mix of pods.

All are integers held in doubles, so that sums come out the same in any order. The C side of this layout is
`native/placement/packing.h`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamina.placement.packing.cluster import MAX_GPUS, REFUSED, Ask, Ints
from lamina.placement.packing.mix import Floats, Mix

UNIT = 1_000_000
"""Amounts are in millionths of a GPU, weights in millionths."""


@dataclass(frozen=True, kw_only=True)
class LeftoverValues:
    """What each leftover is worth for a mix, in its natural size. `step` and `levels` are in GPUs.

    `one` and `fill` have an entry for each pod of the mix. `remainder` has 1001 entries for each kind and `idle`
    MAX_GPUS + 1, both in GPUs. A hinge is (weight, GPU factor, CPU factor in GPUs per thousandth of a core).
    """

    one: Floats
    fill: Floats
    gpu_price: Floats
    cpu_price: Floats
    hinges: Sequence[tuple[float, float, float]]
    remainder: Floats
    unpaired: float
    idle: Floats
    all_idle: float
    step: float
    levels: Floats | None = None


@dataclass(frozen=True)
class Coefficients:
    """One policy for one mix.

    Each of m classes of pods has one of j shares (count, memory by kind, cores) and one of r host sizes (CPU and
    host memory, at least a thousandth of a core and 1 MiB). k kinds, h hinges.
    """

    host_cpu: Floats
    host_memory: Floats
    one_weight: Floats
    fill_weight: Floats
    class_share: Ints
    class_host: Ints
    share_count: Ints
    share_cores: Ints
    share_memory: Ints
    share_amount: Floats
    parts: tuple[int, int]
    gpu_price: Floats
    cpu_price: Floats
    hinge_gpu: Floats
    hinge_cpu: Floats
    hinge_weight: Floats
    remainder: Floats
    unpaired: float
    idle: Floats
    all_idle: float
    levels: Floats
    step: float


def whole(values: Floats | list[float]) -> Floats:
    """Rounded to integers, C order."""
    return np.ascontiguousarray(np.rint(np.asarray(values, np.float64)))


def shares_of(asks: tuple[Ask, ...]) -> tuple[Ints, list[Ask]]:
    """For each class the number of its share, and one class for each share."""
    numbers: dict[tuple[int, tuple[int, ...], int], int] = {}
    examples: list[Ask] = []
    of_class = []
    for ask in asks:
        share = (ask.gpus, ask.gpu_memory, ask.gpu_cores)
        if share not in numbers:
            numbers[share] = len(numbers)
            examples.append(ask)
        of_class.append(numbers[share])
    return np.array(of_class, np.int32), examples


def amounts(mix: Mix, examples: list[Ask]) -> Floats:
    """Millionths of GPU that a pod takes on each kind: (shares, kinds); 0 where it does not fit."""
    found = np.zeros((len(examples), len(mix.full_memory)))
    for j, ask in enumerate(examples):
        for k, (memory, cores) in enumerate(zip(mix.full_memory.tolist(), mix.full_cores.tolist(), strict=True)):
            if ask.gpu_memory[k] <= memory:
                part = mix.parts[0] * (ask.gpu_memory[k] * 1000 // memory) + mix.parts[1] * (
                    ask.gpu_cores * 1000 // cores
                )
                found[j, k] = ask.gpus * part
    return found


def coefficients(mix: Mix, values: LeftoverValues) -> Coefficients:
    """The coefficients for a mix, from values in their natural size."""
    of_class, examples = shares_of(mix.asks)
    hosts = [(max(1, ask.cpu), max(1, ask.memory)) for ask in mix.asks]
    distinct = list(dict.fromkeys(hosts))
    kinds = len(mix.full_memory)
    wanted = np.array([ask.gpu_memory for ask in examples], np.int32).reshape(len(examples), kinds)
    hinge = np.array(values.hinges, np.float64).reshape(-1, 3)
    return Coefficients(
        host_cpu=whole([cpu for cpu, _ in distinct]),
        host_memory=whole([memory for _, memory in distinct]),
        one_weight=whole(values.one * UNIT),
        fill_weight=whole(values.fill * UNIT),
        class_share=of_class,
        class_host=np.array([distinct.index(host) for host in hosts], np.int32),
        share_count=np.array([ask.gpus for ask in examples], np.int32),
        share_cores=np.array([ask.gpu_cores for ask in examples], np.int32),
        share_memory=np.ascontiguousarray(np.where(wanted > mix.full_memory, REFUSED, wanted).astype(np.int32)),
        share_amount=whole(amounts(mix, examples)),
        parts=mix.parts,
        gpu_price=whole(values.gpu_price * UNIT),
        cpu_price=whole(values.cpu_price * UNIT * UNIT),
        hinge_weight=whole(hinge[:, 0] * UNIT),
        hinge_gpu=whole(hinge[:, 1]),
        hinge_cpu=whole(hinge[:, 2] * UNIT),
        remainder=whole(values.remainder * UNIT * UNIT),
        unpaired=float(round(values.unpaired * UNIT)),
        idle=whole(np.broadcast_to(values.idle, MAX_GPUS + 1) * UNIT * UNIT),
        all_idle=float(round(values.all_idle * UNIT * UNIT)),
        levels=np.zeros(0) if values.levels is None else whole(values.levels * UNIT * UNIT),
        step=float(round(values.step * UNIT * UNIT)),
    )
