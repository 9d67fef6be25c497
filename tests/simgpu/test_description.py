"""Descriptions of machines, valid and not, and the file that comes of them."""

import ctypes
from pathlib import Path

import pytest

from lamina.core.cards import CARDS, card
from lamina.errors import BadInput
from lamina_lab import simgpu
from lamina_lab.simgpu import layout


@pytest.mark.parametrize("key", sorted(CARDS))
def test_every_card_makes_a_machine(key: str, tmp_path: Path) -> None:
    simgpu.write(simgpu.parse(f"gpus: [{{model: {key}}}]"), tmp_path / "m")
    gpu = simgpu.read(tmp_path / "m").gpus[0]
    assert (gpu.memory_mib, gpu.used_mib, gpu.processes) == (CARDS[key].memory_mib, 0, ())
    named = card(CARDS[key].name.upper())
    same = [each for each in CARDS.values() if each.name == CARDS[key].name]
    assert named is same[0] and card(key.lower().replace("-", " ")) is CARDS[key]
    assert len({each.memory_mib for each in same}) == len(same), "cards of one name differ in memory"
    assert CARDS[key].context_bytes % (1 << 20) == 0
    assert 0 < CARDS[key].power_idle < CARDS[key].power_limit


def test_a_v100_context_is_what_the_seed_measured() -> None:
    tensor = -(-1_240_000_000 // (2 << 20)) * (2 << 20)
    assert card("V100-PCIE-32GB").context_bytes == 317718528
    assert 317718528 + tensor == 1559232512


def test_uuids_come_from_the_seed(tmp_path: Path) -> None:
    text = "seed: {}\ngpus: [{{model: T4, count: 16}}]"
    for name in ("a", "b"):
        simgpu.write(simgpu.parse(text.format(name)), tmp_path / name)
    simgpu.write(simgpu.parse(text.format("a")), tmp_path / "again")
    first, second, again = ([g.uuid for g in simgpu.read(tmp_path / n).gpus] for n in ("a", "b", "again"))
    assert first == again
    assert len({*first, *second}) == 32


def test_given_values_are_kept(tmp_path: Path) -> None:
    uuid = "GPU-fcda056f-77c6-7fdf-f7c7-6453511eaaa1"
    text = f"gpus: [{{model: T4, uuid: {uuid}, busId: '00000000:d8:00.0', numa: 1, idleWatts: 26, persistence: false}}]"
    simgpu.write(simgpu.parse(text), tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    gpu = layout.GpuRecord.from_buffer_copy(data, layout.gpu_offset(0))
    assert gpu.uuid.decode() == uuid
    assert (gpu.bus_id, gpu.pci_bus, gpu.numa) == (b"00000000:D8:00.0", 0xD8, 1)
    assert (gpu.power_idle_mw, gpu.persistence) == (26000, 0)
    assert len(data) == layout.file_size(1)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o600
    assert layout.Header.from_buffer_copy(data).size == len(data)
    assert ctypes.sizeof(layout.Header) <= layout.HEADER_BYTES


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpus: [{model: RTX9}]", "known models are A10"),
        ("gpus: 3", "gpus"),
        ("gpus: []\nfoo: 1", "foo"),
        ("gpus: [{model: T4, color: red}]", "color"),
        ("gpus: [{model: T4, count: 17}]", "at most 16"),
        ("gpus: [{model: T4, count: 0}]", "at least 1"),
        ("gpus: [{model: T4, count: 2, busId: '00000000:D8:00.0'}]", "list the GPUs separately"),
        ("gpus: [{model: T4, uuid: GPU-1}]", "lower-case UUID"),
        ("gpus: [{model: T4, busId: d8}]", "PCI address"),
        ("gpus: [{model: T4, numa: -1}]", "negative"),
        ("gpus: [{model: T4, temperature: 500}]", "0 to 120"),
        ("gpus: [{model: T4, timeSliceUs: 99}]", "100 to 33000"),
        ("gpus: [{model: T4, switchUs: -1}]", "0 to 10000"),
        ("gpus: [{model: T4, switchUs: 10001}]", "0 to 10000"),
        ("gpus: [{model: T4, timeSliceUs: 99}]", "must be 100 to 33000, or 0"),
        ("gpus: [{model: T4, timeSliceUs: 33001}]", "must be 100 to 33000, or 0"),
        ("gpus: [{model: T4, busId: '00000000:D8:00.0'}, {model: T4, busId: '00000000:d8:00.0'}]", "two GPUs"),
        ("driver: new\ngpus: []", "driver version"),
        ("cuda: '12'\ngpus: []", "CUDA version"),
        ("kernelNs: -1\ngpus: []", "negative"),
        ("gpus: [", "not YAML"),
        ("{}", "gpus"),
    ],
)
def test_an_invalid_description_is_refused_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        simgpu.parse(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"x" * 10, b"\0" * 100_000])
def test_a_file_that_is_no_machine_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(BadInput):
        simgpu.read(tmp_path / "m")
    with pytest.raises(BadInput):
        simgpu.read(tmp_path / "absent")


def test_a_gpu_that_is_not_there_cannot_be_poked(tmp_path: Path) -> None:
    simgpu.write(simgpu.parse("gpus: [{model: T4}]"), tmp_path / "m")
    with pytest.raises(BadInput):
        simgpu.inject_xid(tmp_path / "m", "GPU-0", 31)
    with pytest.raises(BadInput):
        simgpu.set_lost(tmp_path / "m", "GPU-0", True)
