"""Labels and annotations for tools of other systems: what dialects write them from, and their form."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from lamina.core.gpu_facts import GpuFacts
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant, Share
from lamina.core.mig_devices import NONE, MigDevice
from lamina.core.sharing import ReplicaSharing

MAX_LABEL = 63
"""Characters of a label's value, as Kubernetes limits them."""


class Metadata(Struct, frozen=True, kw_only=True):
    """Labels and annotations that tools of the dialect's system expect on a node or pod. Lamina does not read them."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    timestamps: frozenset[str] = frozenset()
    """Further labels of a node. Their value is the Unix time at which labels last changed."""


class BoundPod(NamedTuple):
    """A pod that was bound to a node. `now` is Unix time, `inventory` the node's, if it is known."""

    spec: Mapping[str, Any]
    grant: Grant
    now: float
    inventory: Inventory | None = None

    def shares_by_container(self) -> list[tuple[Share, ...]]:
        """The shares of all containers in the pod's order, init containers first; empty for those without any."""
        shares = {container.name: container.shares for container in self.grant.containers}
        containers = [*(self.spec.get("initContainers") or ()), *self.spec["containers"]]
        return [shares.get(container["name"], ()) for container in containers]


class NodeFacts(Struct, frozen=True, kw_only=True):
    """A node that offers GPUs."""

    inventory: Inventory
    gpus: tuple[GpuFacts, ...] = ()
    """The GPUs of the inventory and those that are partitioned, as the driver describes them."""
    mig_strategy: str = NONE
    mig_devices: tuple[MigDevice, ...] = ()
    """The MIG devices that kubelet allocates."""
    sharing: ReplicaSharing = ReplicaSharing()
    """How many replicas of native devices there are."""
    cuda: tuple[int, int] = (0, 0)
    """The newest CUDA that the driver runs, such as (12, 4)."""
    machine: str = ""
    """The product name of the machine; empty if it is unknown."""
    timestamps: bool = True
    """Whether the node's configuration lets labels have the time of the last change."""


def label_value(text: str, suffix: str = "") -> str:
    """A valid label value: at most 63 characters, with a letter or digit at both ends."""
    allowed = re.sub(r"[^A-Za-z0-9-_. ]", "", text.strip()).replace(" ", "-")
    return allowed[: MAX_LABEL - len(suffix)].strip("-_.") + suffix
