"""All marks of a node: what is wanted, what is there, and the patches between them. Pure."""

from collections.abc import Mapping, Set
from typing import Any

from msgspec import Struct

from lamina.agent.marks import amounts, features, registers
from lamina.agent.marks.features import System
from lamina.agent.marks.mig_features import Mig
from lamina.dialects.config import Config
from lamina.model.gpus import Inventory
from lamina.ports.kube import Object
from lamina.ports.nvml import GpuFacts

NFD_OWNS = "nfd.node.kubernetes.io/feature-labels"
"""The annotation in which node feature discovery lists the labels that are its own, GFD's among them."""
REGISTERS = frozenset({registers.HAMI, registers.VOLCANO})


class Marks(Struct, frozen=True, kw_only=True):
    """Labels, annotations and amounts of a node."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    amounts: Mapping[str, int] = {}


class Seen(Struct, frozen=True, kw_only=True):
    """What matters of the Node object as it is."""

    uid: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}


def wanted(
    inventory: Inventory,
    facts: tuple[GpuFacts, ...],
    system: System,
    config: Config,
    mig: Mig = Mig(),  # noqa: B008
) -> Marks:
    """The marks of a node that offers this; a node that offers nothing has none.

    GPUs that are cut by MIG are not in the inventory, but labels tell of them as of the others.
    """
    offered, settings = {gpu.uuid for gpu in inventory.gpus}, config.for_node(inventory.node)
    cut = {one.uuid for one in facts if one.mig_enabled and settings.offers(one.uuid, one.index)}
    listed = tuple(one for one in facts if one.uuid in offered | cut)
    if not listed:
        return Marks()
    annotated = {
        "hami": (registers.HAMI, registers.hami),
        "volcano": (registers.VOLCANO, registers.volcano),
    }
    labels = features.labels(listed, system, features.sharing(inventory), mig)
    return Marks(
        labels=labels if config.node.labels else {},
        annotations={
            key: write(inventory)
            for name, (key, write) in annotated.items()
            if name in config.node.registers and any(gpu.by_grant for gpu in inventory.gpus)
        },
        amounts=amounts.amounts(inventory, config) if offered else {},
    )


def metadata_patch(marks: Marks, seen: Seen, *, labelling: bool, now: float, stamped: bool = True) -> Object | None:
    """The merge patch that puts labels and annotations right, or None. Labels that others own are left alone.

    Unless they are to be `stamped`, no label says when they changed.
    """
    others = set(filter(None, seen.annotations.get(NFD_OWNS, "").split(",")))
    names = {*features.LABELS, *filter(features.kept, {**seen.labels, **marks.labels})}
    ours = names - others if labelling else set[str]()
    labels = _difference({k: v for k, v in marks.labels.items() if k in ours}, seen.labels, ours - {features.TIMESTAMP})
    stamp = features.TIMESTAMP
    if stamp in ours and not (marks.labels and stamped) and stamp in seen.labels:
        labels[stamp] = None
    elif stamp in ours and stamped and marks.labels and (labels or stamp not in seen.labels):
        labels[stamp] = str(int(now))
    annotations = _difference(marks.annotations, seen.annotations, REGISTERS)
    changed = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"metadata": {"uid": seen.uid, **changed}} if changed else None


def status_patch(marks: Marks, seen: Seen, names: Set[str]) -> Object | None:
    """The merge patch that puts the amounts right, or None. `names` are all that are kept here."""
    texts = {name: amounts.spelled(amount) for name, amount in marks.amounts.items()}
    status = {
        "capacity": _difference(texts, seen.capacity, names),
        "allocatable": _difference(texts, seen.allocatable, names),
    }
    changed = {key: value for key, value in status.items() if value}
    return {"status": changed} if changed else None


def _difference(want: Mapping[str, str], have: Mapping[str, str], ours: Set[str]) -> dict[str, Any]:
    """What to set, and with None what to remove of `ours`."""
    changed: dict[str, Any] = {key: value for key, value in want.items() if have.get(key) != value}
    return changed | dict.fromkeys((ours & have.keys()) - want.keys())
