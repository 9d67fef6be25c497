"""Least expected waste: which node and which GPUs leave the cluster worth most to the pods that usually come.

Everything here is a pure function of arrays of free capacity (`Cluster`), of what a pod asks (`Ask`), and of the pods
seen so far (`Seen`, `Mix`). A scheduler needs `Packer` alone. docs/placement.md explains the policy.
"""

from lamina.placement.packing.cluster import MOST_GPUS, REFUSED, Ask, Cluster, as_bits, bits
from lamina.placement.packing.kernel import LIBRARY
from lamina.placement.packing.packer import Packer
from lamina.placement.packing.seen import Seen

__all__ = ["LIBRARY", "MOST_GPUS", "REFUSED", "Ask", "Cluster", "Packer", "Seen", "as_bits", "bits"]
