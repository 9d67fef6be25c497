"""The resources of NVIDIA's device plugin that pods count: GPUs, MIG devices, and replicas of either.

    nvidia.com/gpu                a GPU or a replica of one
    nvidia.com/gpu.shared         a replica, where its configuration renames
    nvidia.com/mig-1g.5gb         a MIG device of that profile, or a replica of one
    nvidia.com/mig-1g.5gb.shared  a replica, where its configuration renames

A pod that counts only these needs no grant: kube-scheduler finds a node with enough of them and kubelet chooses the
device. A dialect may use `nvidia.com/gpu` too, and then reads it.
"""

import re
from collections.abc import Iterable

_NAME = re.compile(r"nvidia\.com/(gpu|mig-[1-9][0-9]*g\.[1-9][0-9]*gb(\.[a-z0-9.]+?)?)(\.shared)?")


def native_resources(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are resources of NVIDIA's plugin, in order."""
    return tuple(sorted({name for name in names if _NAME.fullmatch(name)}))
