"""Cards of workstations: what NVML and CUDA say about them, what they lack, and names that are nearly theirs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lamina.core.cards import CARDS, card
from lamina.core.mig_cards import mig_card
from lamina.core.workstation_cards import WORKSTATION_CARDS
from lamina.errors import BadInput
from tests.simgpu.machines import Machine

KEYS = tuple(each.key for each in WORKSTATION_CARDS)
FACTS = """
import json
import pynvml as nv

def of(name, *more):
    try:
        return getattr(nv, name)(gpu, *more)
    except nv.NVMLError as error:
        return error.value

nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByIndex(0)
print(json.dumps({
    "name": of("nvmlDeviceGetName"), "compute": of("nvmlDeviceGetCudaComputeCapability"),
    "architecture": of("nvmlDeviceGetArchitecture"), "brand": of("nvmlDeviceGetBrand"),
    "ecc": of("nvmlDeviceGetEccMode"), "errors": of("nvmlDeviceGetTotalEccErrors", 1, 0),
    "mig": of("nvmlDeviceGetMigMode"),
    "memory": of("nvmlDeviceGetMemoryInfo").total >> 20, "device": of("nvmlDeviceGetPciInfo").pciDeviceId >> 16,
}))
"""
NOT_SUPPORTED = 3


def facts(key: str, folder: Path) -> dict[str, Any]:
    done = Machine(folder / "m", f"gpus: [{{model: {key}}}]").run(sys.executable, "-c", FACTS)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("key", "compute", "architecture", "brand", "ecc"),
    [
        ("RTX-3060", [8, 6], 7, 5, NOT_SUPPORTED), ("RTX-4090", [8, 9], 8, 5, NOT_SUPPORTED),
        ("RTX-5090", [12, 0], 10, 5, NOT_SUPPORTED), ("RTX-A6000", [8, 6], 7, 13, [0, 0]),
        ("RTX-PRO-6000-WORKSTATION", [12, 0], 10, 13, [0, 0]), ("RTX-PRO-6000-SERVER", [12, 0], 10, 13, [1, 1]),
        ("T4", [7, 5], 6, 2, [1, 1]),
    ],
)  # fmt: skip
def test_nvml_says_what_the_table_has(
    key: str, compute: list[int], architecture: int, brand: int, ecc: object, tmp_path: Path
) -> None:
    said, known = facts(key, tmp_path), CARDS[key]
    assert (said["compute"], said["architecture"], said["brand"], said["ecc"]) == (compute, architecture, brand, ecc)
    assert (said["name"], said["memory"], said["device"]) == (known.name, known.memory_mib, known.pci_device)
    assert said["errors"] == (0 if ecc == [1, 1] else NOT_SUPPORTED)
    assert said["mig"] == ([0, 0] if known.mig_capable else NOT_SUPPORTED)


@pytest.mark.parametrize("key", KEYS)
def test_only_the_rtx_pro_6000_has_mig_and_each_card_is_that_of_its_device(key: str) -> None:
    found = CARDS[key]
    assert found.mig_capable == ("PRO-6000" in key) == (mig_card(found.pci_device) is not None)
    assert found.nvlinks == 0 and found.sms * found.cores_per_sm == found.sms * 128
    others = [each for each in CARDS.values() if each.pci_device == found.pci_device and each is not found]
    assert all(each.name == found.name for each in others), "one device has one name"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("RTX 4090", "RTX-4090"), ("nvidia geforce rtx 4090", "RTX-4090"), ("GeForce RTX 5070 Ti", "RTX-5070-Ti"),
        ("NVIDIA RTX A6000", "RTX-A6000"), ("rtx-3080-12gb", "RTX-3080-12GB"), ("NVIDIA T4", "T4"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-SERVER"),
    ],
)  # fmt: skip
def test_names_that_people_write_are_known(name: str, key: str) -> None:
    assert card(name).key == key


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RTX-4090X", "RTX-4090"), ("RTX4090", "RTX-4090"), ("4090", "RTX-4090"), ("GeForce RTX 5090Ti", "RTX-5090"),
        ("RTX-6000", "RTX-A6000"), ("A100-SXM-40GB", "A100-SXM4-40GB"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_one_is_answered_with_it(name: str, near: str) -> None:
    with pytest.raises(BadInput) as wrong:
        card(name)
    said = str(wrong.value)
    assert said.startswith(f"there is no GPU model {name!r}; did you mean {near}") and len(said.splitlines()) == 1


def test_a_name_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(BadInput, match=r"^there is no GPU model 'Voodoo2'; known models are A10, "):
        card("Voodoo2")
