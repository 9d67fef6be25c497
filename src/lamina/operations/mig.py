"""MIG: the profiles of cards, what the nodes of a cluster have, and the request for another configuration."""

from collections.abc import Callable, Iterable, Mapping, Set

from msgspec import Struct

from lamina.agent.mig.label_partitioner import FAILED, LABEL, NOT_APPLIED, PENDING, STATE
from lamina.configuration import mig_parted
from lamina.configuration.mig_parted import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.cards import card as gpu_card
from lamina.core.gpus import MigDeviceCount
from lamina.core.mig import MigCard
from lamina.core.mig_cards import MIG_CARDS, mig_card
from lamina.core.mig_devices import PREFIX, strategy_hint
from lamina.dra.slices import digest_of
from lamina.errors import BadInput
from lamina.name_hints import nearest
from lamina.ports.kube import (
    CONFIG_MAPS,
    EVENTS,
    INVENTORIES,
    NODES,
    RESOURCE_SLICES,
    Kube,
    NotFound,
    Object,
    Refused,
)


class ProfileRow(Struct, frozen=True, kw_only=True, rename="camel"):
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
    architecture: str
    compute_capability: str
    card_gigabytes: int


def profile_rows(card: str) -> list[ProfileRow]:
    """The profiles of the cards whose names contain `card`. Raises BadInput where no card does."""
    chosen = [mig_card for name, mig_card in MIG_CARDS.items() if _matches(name, card.casefold())]
    if not chosen:
        raise BadInput(f"no card matches {card!r}; known cards are {', '.join(MIG_CARDS)}")
    return [
        ProfileRow(
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
            architecture=mig_card.architecture,
            compute_capability=f"{mig_card.compute[0]}.{mig_card.compute[1]}",
            card_gigabytes=mig_card.gigabytes,
        )
        for mig_card in chosen
        for profile in mig_card.profiles
    ]


def _matches(name: str, wanted: str) -> bool:
    """Also by the names of NVML, such as NVIDIA A100-SXM4-40GB for A100-40GB."""
    known = name.casefold()
    return wanted in known or {*known.split("-")} <= {*wanted.replace(" ", "-").split("-")}


class MigNode(Struct, frozen=True):
    """A node that has MIG devices or is asked to have some."""

    name: str
    configuration: str
    """The value of the label nvidia.com/mig.config."""
    state: str
    devices: tuple[str, ...]
    """Devices that kubelet allocates or that are not offered, by profile, and instances created for grants."""
    reason: str = ""
    """Why the configuration could not be applied; empty while it did not fail, or where events cannot be read."""
    withheld: str = ""
    """Why some of the devices are not offered; empty if all are."""


async def mig_nodes(kube: Kube, selected: Callable[[Mapping[str, str]], bool] | None = None) -> list[MigNode]:
    """The nodes with MIG devices or with a requested configuration, all or those whose labels are selected."""
    try:
        inventories = (await kube.list(INVENTORIES)).items
    except NotFound:
        inventories = []
    specs = {inventory["metadata"]["name"]: inventory["spec"] for inventory in inventories}
    instances = {name: _instances(spec) for name, spec in specs.items()}
    nodes, reasons, claimable = [], await _reasons(kube), await _offered_to_claims(kube)
    for node in (await kube.list(NODES)).items:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if selected is not None and not selected(labels):
            continue
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        counts = {key.removeprefix(PREFIX): count for key, count in allocatable.items() if key.startswith(PREFIX)}
        others, withheld = _others(specs.get(name, {}), claimable.get(name, frozenset()))
        if LABEL in labels or counts or others or instances.get(name):
            devices = sorted(f"{count} {profile}" for profile, count in counts.items() if count != "0")
            described = (*devices, *others, *instances.get(name, ()))
            wanted, state = labels.get(LABEL, ""), labels.get(STATE, "")
            reason = reasons.get(name, "") if state == FAILED else ""
            nodes.append(MigNode(name, wanted, state, described, reason, withheld))
    return nodes


async def _reasons(kube: Kube) -> dict[str, str]:
    """The last failure of each node whose events can be read."""
    try:
        events = (await kube.list(EVENTS, namespace="default", fields=f"reason={NOT_APPLIED}")).items
    except (Refused, NotFound):
        return {}
    failures = [event for event in events if event.get("reason") == NOT_APPLIED]
    failures.sort(key=lambda event: str(event.get("lastTimestamp") or ""))
    return {event["involvedObject"]["name"]: str(event.get("message", "")) for event in failures}


async def _offered_to_claims(kube: Kube) -> Mapping[str, Set[str]]:
    """The profiles of the MIG devices that claims may get, by node; nothing where slices cannot be read."""
    try:
        slices = (await kube.list(RESOURCE_SLICES)).items
    except (Refused, NotFound):
        return {}
    found: dict[str, set[str]] = {}
    for each in slices:
        for device in each["spec"].get("devices") or () if digest_of(each) else ():
            profile = ((device.get("attributes") or {}).get("profile") or {}).get("string")
            if profile:
                found.setdefault(each["spec"].get("nodeName") or "", set()).add(profile)
    return found


def _others(inventory: Object, claimable: Set[str]) -> tuple[list[str], str]:
    """The devices that are offered under another resource than that of their profile, to claims alone, or not at all,
    and why not."""
    shown, withheld = [], ""
    for wire in inventory.get("migDevices", ()):
        devices = MigDeviceCount(
            profile=wire["profile"],
            count=wire["count"],
            resource=wire.get("resource", ""),
            reason=wire.get("reason", ""),
        )
        if not devices.resource and devices.profile in claimable:
            shown.append(f"{devices.count} {devices.profile} (for claims)")
        elif not devices.resource:
            shown.append(f"{devices.count} {devices.profile} (not offered)")
            withheld = f"{devices.reason}{strategy_hint(devices)}"
        elif not devices.resource.startswith(PREFIX):
            shown.append(f"{devices.count} {devices.profile} as {devices.resource}")
    return shown, withheld


def _instances(inventory: Object) -> list[str]:
    return [
        f"{instance['profile']} at {instance['start']} of GPU {gpu['index']}"
        for gpu in inventory.get("gpus", ())
        for instance in gpu.get("instances", ())
    ]


async def request_configuration(kube: Kube, node: str, configuration: str) -> None:
    """Label the node with the configuration; its agent applies it.

    Raises BadInput where there is no such node, or where its GPUs cannot have such a configuration.
    """
    await _check(kube, node, configuration)
    try:
        await kube.patch(NODES, node, {"metadata": {"labels": {LABEL: configuration, STATE: PENDING}}})
    except NotFound as missing:
        raise BadInput(f"there is no node {node}") from missing


async def _check(kube: Kube, node: str, configuration: str) -> None:
    """Raises BadInput for a name that is neither in mig-parted's file nor a standard one of the node's cards."""
    cards = await _cards(kube, node)
    if cards is None:
        return
    names = mig_parted.standard_names(cards)
    try:
        file = await kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=kube.lamina_namespace)
        text = str((file.get("data") or {}).get(CONFIG_MAP_KEY, ""))
        names = {*mig_parted.load(text, f"ConfigMap {kube.lamina_namespace}/{CONFIG_MAP}"), *names}
    except NotFound:
        pass
    if configuration not in names:
        hint = nearest(configuration, names) or f"; it must be one of {', '.join(sorted(names))}"
        raise BadInput(f"the GPUs of node {node} have no MIG configuration {configuration}{hint}")


async def _cards(kube: Kube, node: str) -> Iterable[MigCard] | None:
    """The cards with MIG that the node may have; None where it has GPUs that are not known."""
    try:
        gpus = (await kube.get(INVENTORIES, node))["spec"].get("gpus") or ()
    except NotFound:
        gpus = ()
    if not gpus:  # partitioned GPUs are not listed
        return MIG_CARDS.values()
    try:
        found = [mig_card(gpu_card(gpu["model"]).pci_device) for gpu in gpus]
    except BadInput:
        return None
    return [each for each in found if each is not None]
