"""The configuration file of NVIDIA's mig-parted, and the target that one of its names sets for each GPU of a node.

Names that the file does not have are NVIDIA's standard ones, worked out from the cards: all-disabled, all-enabled,
all-balanced, and all-<profile> for as many of a profile as fit, with + written as a dot (all-1g.5gb.me).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from lamina.configuration.yaml_documents import load_mapping
from lamina.core.mig import MigCard
from lamina.core.mig_devices import resource_part
from lamina.errors import BadInput

CONFIG_MAP, CONFIG_MAP_KEY = "mig-parted-config", "config.yaml"
"""Where the file is, in the namespace of our own configuration."""
_DEVICE = re.compile(r"0x[0-9A-Fa-f]{8}")
_KEYS = {"device-filter", "devices", "mig-enabled", "mig-devices"}


class SelectableGpu(Struct, frozen=True):
    """A GPU that the file may select. `pci_device` is as NVML has it; `card` is None if it cannot be partitioned."""

    uuid: str
    index: int
    pci_device: int
    card: MigCard | None


class MigTarget(NamedTuple):
    """The state a GPU should have: MIG mode off, or on with a number of instances of each profile."""

    enabled: bool
    counts: Mapping[str, int] = {}


class Entry(NamedTuple):
    """One entry of a named configuration. `devices` is None for all."""

    filters: tuple[int, ...]
    devices: tuple[int, ...] | None
    target: MigTarget

    def selects(self, gpu: SelectableGpu) -> bool:
        return (not self.filters or gpu.pci_device in self.filters) and (
            self.devices is None or gpu.index in self.devices
        )


Configs = Mapping[str, tuple[Entry, ...]]


def load(text: str, where: str) -> Configs:
    """The named configurations of a file; none in an empty one. Raises BadInput with mig-parted's messages."""
    if not text.strip():
        return {}
    document = load_mapping(text, where)
    if "version" not in document:
        raise BadInput(f"{where}: unable to parse with missing 'version' field")
    if document["version"] != "v1":
        raise BadInput(f"{where}: unknown version: {document['version']}; it must be v1")
    for key in document.keys() - {"version", "mig-configs"}:
        raise BadInput(f"{where}: unexpected field: {key}; known fields are version, mig-configs")
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
        raise BadInput(f"{where} must be a mapping")
    for key in entry.keys() - _KEYS:
        raise BadInput(f"{where}: unexpected field: {key}; known fields are {', '.join(sorted(_KEYS))}")
    for key in ("devices", "mig-enabled"):
        if key not in entry:
            raise BadInput(f"{where}: missing required field: {key}")
    if not isinstance(entry["mig-enabled"], bool):
        raise BadInput(f"{where}.mig-enabled must be true or false, got {entry['mig-enabled']!r}")
    return Entry(_filters(entry.get("device-filter"), where), _devices(entry["devices"], where), _target(entry, where))


def _filters(given: Any, where: str) -> tuple[int, ...]:
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) and _DEVICE.fullmatch(text) for text in texts):
        raise BadInput(
            f"{where}.device-filter must be a PCI device ID such as 0x20B010DE or a list of them, got {given!r}"
        )
    return tuple(int(text, 16) for text in texts)


def _devices(given: Any, where: str) -> tuple[int, ...] | None:
    if given == "all":
        return None
    if isinstance(given, list) and all(type(index) is int and index >= 0 for index in given):
        return tuple(given)
    raise BadInput(f"{where}.devices must be all or a list of indices, got {given!r}")


def _target(entry: Mapping[str, Any], where: str) -> MigTarget:
    counts = entry.get("mig-devices")
    if not entry["mig-enabled"]:
        if counts:
            raise BadInput(f"{where}: MIG devices included when 'mig-enabled' is false")
        return MigTarget(False)
    if counts is None:
        raise BadInput(f"{where}: missing required field 'mig-devices' when 'mig-enabled' is true")
    if not isinstance(counts, dict) or not all(type(count) is int and count >= 0 for count in counts.values()):
        raise BadInput(f"{where}.mig-devices must be profiles with counts, such as 1g.5gb: 7")
    if counts and not any(counts.values()):
        raise BadInput(f"{where}: all counts for all MigProfiles are 0")
    return MigTarget(True, {str(name): count for name, count in counts.items() if count})


def targets(name: str, configs: Configs, gpus: Sequence[SelectableGpu]) -> dict[str, MigTarget]:
    """The target of each GPU that the configuration `name` selects, by UUID. Later entries override earlier ones.

    Raises BadInput for an unknown name, and for profiles that a card does not have, with those that it has.
    """
    found = _of_file(configs[name], gpus) if name in configs else _standard(name, gpus, configs)
    for gpu in gpus:
        target = found.get(gpu.uuid)
        if target is None:
            continue
        if gpu.card is None:
            if target.enabled:
                raise BadInput(f"{name} enables MIG on GPU {gpu.index}, which does not support it")
            del found[gpu.uuid]
            continue
        gpu.card.arrange(target.counts)
    return found


def standard_names(cards: Iterable[MigCard]) -> set[str]:
    """The names that need no file."""
    profiles = {f"all-{resource_part(profile.name)}" for card in cards for profile in card.profiles}
    return {"all-disabled", "all-enabled", "all-balanced", *profiles}


def _of_file(entries: Sequence[Entry], gpus: Sequence[SelectableGpu]) -> dict[str, MigTarget]:
    return {gpu.uuid: entry.target for entry in entries for gpu in gpus if entry.selects(gpu)}


def _standard(name: str, gpus: Sequence[SelectableGpu], configs: Configs) -> dict[str, MigTarget]:
    cards = {gpu.uuid: gpu.card for gpu in gpus if gpu.card is not None}
    if name == "all-disabled":
        return dict.fromkeys(cards, MigTarget(False))
    if name == "all-enabled":
        return dict.fromkeys(cards, MigTarget(True))
    if name == "all-balanced":
        return {uuid: MigTarget(True, card.balanced()) for uuid, card in cards.items()}
    found = {
        uuid: MigTarget(True, {profile.name: card.most(profile)})
        for uuid, card in cards.items()
        for profile in card.profiles
        if name == f"all-{resource_part(profile.name)}"
    }
    if not found:
        known = sorted({*configs, *standard_names(cards.values())})
        raise BadInput(f"the GPUs of this node have no MIG configuration {name}; it must be one of {', '.join(known)}")
    return found
