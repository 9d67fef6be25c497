"""mig-parted's configuration file, and what one of its names asks of each GPU of a node.

Names that the file does not have are NVIDIA's standard ones, worked out from the cards: all-disabled, all-enabled,
all-balanced, and all-<profile> for as many of a profile as fit, with + written as a dot (all-1g.5gb.me).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from lamina.dialects.strict import load_mapping
from lamina.errors import BadInput
from lamina.model.mig import MigCard

CONFIG_MAP, CONFIG_MAP_KEY = "mig-parted-config", "config.yaml"
"""Where the file is, in the namespace of our own configuration."""
_DEVICE = re.compile(r"0x[0-9A-Fa-f]{8}")
_KEYS = {"device-filter", "devices", "mig-enabled", "mig-devices"}


class CutGpu(Struct, frozen=True):
    """A GPU as the file selects it. `pci_device` is as NVML has it; `card` is None for one that cannot be cut."""

    uuid: str
    index: int
    pci_device: int
    card: MigCard | None


class Wish(NamedTuple):
    """How a GPU is to be: MIG mode off, or on with so many instances of each profile."""

    enabled: bool
    counts: Mapping[str, int] = {}


class Entry(NamedTuple):
    """One entry of a named configuration. `devices` is None for all."""

    filters: tuple[int, ...]
    devices: tuple[int, ...] | None
    wish: Wish

    def selects(self, gpu: CutGpu) -> bool:
        return (not self.filters or gpu.pci_device in self.filters) and (
            self.devices is None or gpu.index in self.devices
        )


Configs = Mapping[str, tuple[Entry, ...]]


def load(text: str, where: str) -> Configs:
    """The named configurations of a file; none in an empty one. Raises BadInput in mig-parted's words."""
    if not text.strip():
        return {}
    document = load_mapping(text, where)
    if "version" not in document:
        raise BadInput(f"{where}: unable to parse with missing 'version' field")
    if document["version"] != "v1":
        raise BadInput(f"{where}: unknown version: {document['version']}; allowed is v1")
    for key in document.keys() - {"version", "mig-configs"}:
        raise BadInput(f"{where}: unexpected field: {key}; allowed are version, mig-configs")
    named = document.get("mig-configs")
    if not isinstance(named, dict) or not named:
        raise BadInput(f"{where}: at least one entry in 'mig-configs' is required")
    return {str(name): _entries(entries, f"{where}: mig-configs.{name}") for name, entries in named.items()}


def _entries(entries: Any, where: str) -> tuple[Entry, ...]:
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{where}: at least one entry in the list is required")
    return tuple(_entry(entry, f"{where}[{number}]") for number, entry in enumerate(entries))


def _entry(entry: Any, where: str) -> Entry:
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: expected keys with values")
    for key in entry.keys() - _KEYS:
        raise BadInput(f"{where}: unexpected field: {key}; allowed are {', '.join(sorted(_KEYS))}")
    for key in ("devices", "mig-enabled"):
        if key not in entry:
            raise BadInput(f"{where}: missing required field: {key}")
    if not isinstance(entry["mig-enabled"], bool):
        raise BadInput(f"{where}.mig-enabled: {entry['mig-enabled']!r} is neither true nor false")
    return Entry(_filters(entry.get("device-filter"), where), _devices(entry["devices"], where), _wish(entry, where))


def _filters(given: Any, where: str) -> tuple[int, ...]:
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) and _DEVICE.fullmatch(text) for text in texts):
        raise BadInput(f"{where}.device-filter: {given!r} is no PCI device id such as 0x20B010DE, nor a list of them")
    return tuple(int(text, 16) for text in texts)


def _devices(given: Any, where: str) -> tuple[int, ...] | None:
    if given == "all":
        return None
    if isinstance(given, list) and all(type(index) is int and index >= 0 for index in given):
        return tuple(given)
    raise BadInput(f"{where}.devices: {given!r} is neither all nor a list of indices")


def _wish(entry: Mapping[str, Any], where: str) -> Wish:
    counts = entry.get("mig-devices")
    if not entry["mig-enabled"]:
        if counts:
            raise BadInput(f"{where}: MIG devices included when 'mig-enabled' is false")
        return Wish(False)
    if counts is None:
        raise BadInput(f"{where}: missing required field 'mig-devices' when 'mig-enabled' is true")
    if not isinstance(counts, dict) or not all(type(count) is int and count >= 0 for count in counts.values()):
        raise BadInput(f"{where}.mig-devices: expected profiles with counts, such as 1g.5gb: 7")
    if counts and not any(counts.values()):
        raise BadInput(f"{where}: all counts for all MigProfiles are 0")
    return Wish(True, {str(name): count for name, count in counts.items() if count})


def wishes(name: str, configs: Configs, gpus: Sequence[CutGpu]) -> dict[str, Wish]:
    """What the configuration `name` asks of each GPU that it selects, by UUID. Later entries go before earlier ones.

    Raises BadInput for a name that is not there, and for what a card does not have, with what it has.
    """
    found = _of_file(configs[name], gpus) if name in configs else _standard(name, gpus, configs)
    for gpu in gpus:
        wish = found.get(gpu.uuid)
        if wish is None:
            continue
        if gpu.card is None:
            if wish.enabled:
                raise BadInput(f"{name} asks for MIG on GPU {gpu.index}, which is not capable of it")
            del found[gpu.uuid]
            continue
        gpu.card.arrange(wish.counts)
    return found


def _of_file(entries: Sequence[Entry], gpus: Sequence[CutGpu]) -> dict[str, Wish]:
    return {gpu.uuid: entry.wish for entry in entries for gpu in gpus if entry.selects(gpu)}


def _standard(name: str, gpus: Sequence[CutGpu], configs: Configs) -> dict[str, Wish]:
    cards = {gpu.uuid: gpu.card for gpu in gpus if gpu.card is not None}
    if name == "all-disabled":
        return dict.fromkeys(cards, Wish(False))
    if name == "all-enabled":
        return dict.fromkeys(cards, Wish(True))
    if name == "all-balanced":
        return {uuid: Wish(True, card.balanced()) for uuid, card in cards.items()}
    found = {
        uuid: Wish(True, {profile.name: card.most(profile)})
        for uuid, card in cards.items()
        for profile in card.profiles
        if name == f"all-{resource_part(profile.name)}"
    }
    if not found:
        standard = {f"all-{resource_part(profile.name)}" for card in cards.values() for profile in card.profiles}
        known = sorted({*configs, "all-disabled", "all-enabled", "all-balanced", *standard})
        raise BadInput(f"there is no MIG configuration {name} for the GPUs of this node; there are {', '.join(known)}")
    return found


def resource_part(profile: str) -> str:
    """A profile's name as it stands in names of resources and labels: 1g.5gb.me for 1g.5gb+me."""
    return profile.replace("+", ".")
