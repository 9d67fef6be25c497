"""Least expected waste: which node and which GPUs leave the cluster worth most to the pods that usually come.

Everything here is a pure function of arrays of free capacity (`Cluster`), of what a pod asks (`Ask`), and of the pods
that have come (`RequestCounts`, `Mix`). A scheduler needs `Packer` alone. docs/concepts/packing-policy.md explains the
policy.
"""

from lamina.placement.packing.cluster import MAX_GPUS, NO_GPU, REFUSED, Ask, Cluster, GpuKind, as_bits, ask_of, bits
from lamina.placement.packing.kernel import LIBRARY
from lamina.placement.packing.mix import Mix, RequestCounts
from lamina.placement.packing.packer import LearningSchedule, Packer, PackingTrial, learn_policy

__all__ = [
    "LIBRARY",
    "MAX_GPUS",
    "NO_GPU",
    "REFUSED",
    "Ask",
    "Cluster",
    "GpuKind",
    "LearningSchedule",
    "Mix",
    "Packer",
    "PackingTrial",
    "RequestCounts",
    "as_bits",
    "ask_of",
    "bits",
    "learn_policy",
]
