"""MIG: the profiles of cards, what the nodes of a cluster have, and the request for another configuration."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from lamina.agent.mig.partitioner import LABEL, PENDING, STATE
from lamina.errors import BadInput
from lamina.model.mig_cards import MIG_CARDS
from lamina.model.mig_devices import PREFIX
from lamina.ports.kube import INVENTORIES, NODES, Kube, NotFound, Object


class ProfileEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """A MIG profile of a card. Memory is in MiB; None is what is not known."""

    card: str
    profile: str
    id: int
    memory_mib: int | None
    slices: int
    """Of compute, of `card_slices`."""
    card_slices: int
    sms: int | None
    most: int
    """How many instances the card can have at once."""
    starts: tuple[int, ...]
    size: int
    """In slices of memory."""


def profile_rows(card: str) -> list[ProfileEntry]:
    """The profiles of the cards whose names contain `card`. Raises BadInput where no card does."""
    chosen = [mig_card for name, mig_card in MIG_CARDS.items() if card.casefold() in name.casefold()]
    if not chosen:
        raise BadInput(f"no card matches {card!r}; known cards are {', '.join(MIG_CARDS)}")
    return [
        ProfileEntry(
            card=mig_card.model,
            profile=profile.name,
            id=profile.id,
            memory_mib=profile.memory_mib,
            slices=profile.slices,
            card_slices=mig_card.profiles[-1].slices,
            sms=profile.sms,
            most=mig_card.most(profile),
            starts=tuple(profile.starts),
            size=profile.size,
        )
        for mig_card in chosen
        for profile in mig_card.profiles
    ]


class MigNode(Struct, frozen=True):
    """A node that has MIG devices or is asked to have some."""

    name: str
    configuration: str
    """The value of the label nvidia.com/mig.config."""
    state: str
    devices: tuple[str, ...]
    """Devices that kubelet allocates, counted by profile, and instances that were created for grants."""


async def mig_nodes(kube: Kube, selected: Callable[[Mapping[str, str]], bool] | None = None) -> list[MigNode]:
    """The nodes with MIG devices or with a requested configuration, all or those whose labels are selected."""
    try:
        inventories = (await kube.list(INVENTORIES)).items
    except NotFound:
        inventories = []
    instances = {inventory["metadata"]["name"]: _instances(inventory["spec"]) for inventory in inventories}
    nodes = []
    for node in (await kube.list(NODES)).items:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if selected is not None and not selected(labels):
            continue
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        counts = {key.removeprefix(PREFIX): count for key, count in allocatable.items() if key.startswith(PREFIX)}
        if LABEL in labels or counts or instances.get(name):
            devices = sorted(f"{count} {profile}" for profile, count in counts.items() if count != "0")
            described = (*devices, *instances.get(name, ()))
            nodes.append(MigNode(name, labels.get(LABEL, ""), labels.get(STATE, ""), described))
    return nodes


def _instances(inventory: Object) -> list[str]:
    return [
        f"{instance['profile']} at {instance['start']} of GPU {gpu['index']}"
        for gpu in inventory.get("gpus", ())
        for instance in gpu.get("instances", ())
    ]


async def request_configuration(kube: Kube, node: str, configuration: str) -> None:
    """Label the node with the configuration; its agent applies it. Raises BadInput where there is no such node."""
    try:
        await kube.patch(NODES, node, {"metadata": {"labels": {LABEL: configuration, STATE: PENDING}}})
    except NotFound as missing:
        raise BadInput(f"there is no node {node}") from missing
