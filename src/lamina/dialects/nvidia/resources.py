"""The resources of NVIDIA's device plugin that pods count: GPUs, MIG devices, and replicas of either.

    nvidia.com/gpu                a GPU or a replica of one
    nvidia.com/gpu.shared         a replica, where its configuration renames
    nvidia.com/mig-1g.5gb         a MIG device of that profile, or a replica of one
    nvidia.com/mig-1g.5gb.shared  a replica, where its configuration renames

A pod that counts only these asks nothing that has to be granted: kube-scheduler finds a node with enough of them and
kubelet chooses the device. `nvidia.com/gpu` is HAMi's word too, and is read as that.
"""

import re
from collections.abc import Iterable

_NAME = re.compile(r"nvidia\.com/(gpu|mig-[1-9][0-9]*g\.[1-9][0-9]*gb(\.[a-z0-9.]+?)?)(\.shared)?")


def countable(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are resources of NVIDIA's plugin, in order."""
    return tuple(sorted({name for name in names if _NAME.fullmatch(name)}))
