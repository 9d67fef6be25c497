"""A limits file is believed only when it is whole, sound and about memory that is limited."""

import ctypes
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.limits import DeviceLimit, Limits, check, decode, encode, read_limits
from lamina.errors import BadInput, Outside
from tests.building import compile_program
from tests.enforcement.gpu_uuids import UUID

WHOLE = Limits(devices=(DeviceLimit(uuid=UUID.format(1), memory_bytes=1 << 30),))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = ["native/tests/facade_limits.c", "native/facade/shared/limits.c"]
    return compile_program(tmp_path_factory.mktemp("limits"), "limits", sources)


def verdict(reader: Path, *paths: Path) -> str:
    return subprocess.run([reader, *paths], check=True, capture_output=True, text=True).stdout.strip()


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    numbers = draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=layout.MAX_DEVICES, unique=True))
    devices = []
    for number in numbers:
        policy = draw(st.sampled_from(ComputePolicy))
        cores = draw(st.integers(0 if policy is ComputePolicy.NONE else 1, 100))
        most = draw(st.sampled_from((0, 100)) | st.integers(max(1, cores), 100))
        memory, context = draw(st.integers(1, 2**63 - 1)), draw(st.integers(0, 2**63 - 1))
        bare = DeviceLimit(uuid=UUID.format(number), memory_bytes=memory, cores_percent=cores, compute_policy=policy)
        devices.append(msgspec.structs.replace(bare, context_bytes=context, most_percent=most))
    return Limits(devices=tuple(devices), priority=draw(st.integers(0, 9)), log_level=draw(st.integers(0, 4)))


@pytest.mark.parametrize(("memory", "limit"), [(3, 8), (8, 8), (12, 12)])
def test_a_guarantee_that_grows_beyond_the_limit_takes_it_along(memory: int, limit: int) -> None:
    resized = DeviceLimit(uuid=UUID.format(1), memory_bytes=8, request_bytes=4).resized(memory, 30)
    assert (resized.guaranteed, resized.memory_bytes, resized.cores_percent) == (memory, limit, 30)


@given(limits())
def test_what_is_written_is_read(wanted: Limits) -> None:
    assert decode(encode(wanted)) == wanted


def test_programs_believe_what_is_written(reader: Path, tmp_path: Path) -> None:
    full = Limits(devices=tuple(DeviceLimit(uuid=UUID.format(n), memory_bytes=n + 1) for n in range(16)))
    for number, wanted in enumerate((WHOLE, full)):
        path = tmp_path / str(number)
        path.write_bytes(encode(wanted))
        assert verdict(reader, path) == "sound"


DEVICE = WHOLE.devices[0]
BAD_DEVICES = [
    {"memory_bytes": 0}, {"memory_bytes": -1}, {"memory_bytes": 1 << 63},
    {"uuid": ""}, {"uuid": "0"}, {"uuid": UUID.format(1)[4:]}, {"uuid": UUID.format(1) + "0"},
    {"uuid": "GPU-" + "x" * 36},
    {"cores_percent": 20, "most_percent": 19}, {"most_percent": 101}, {"most_percent": -1},
    {"cores_percent": 101}, {"cores_percent": -1}, {"compute_policy": ComputePolicy.CAP},
    {"compute_policy": ComputePolicy.WEIGHT, "cores_percent": 0}, {"context_bytes": -1}, {"context_bytes": 1 << 63},
]  # fmt: skip


@pytest.mark.parametrize("change", BAD_DEVICES, ids=str)
def test_limits_that_cannot_be_enforced_are_refused(change: dict[str, object]) -> None:
    device = msgspec.structs.replace(DEVICE, **change)
    with pytest.raises(BadInput):
        check(Limits(devices=(device,)))


@pytest.mark.parametrize("count", [0, 17])
def test_the_number_of_gpus_is_checked(count: int) -> None:
    devices = tuple(DeviceLimit(uuid=UUID.format(n), memory_bytes=1) for n in range(count))
    with pytest.raises(BadInput, match=str(count)):
        encode(Limits(devices=devices))


def test_a_gpu_is_named_once() -> None:
    twice = msgspec.structs.replace(DEVICE, uuid=DEVICE.uuid.upper().replace("GPU", "GPU"))
    with pytest.raises(BadInput, match="twice"):
        check(Limits(devices=(DEVICE, twice)))


@given(st.integers(0, ctypes.sizeof(layout.LimitsFile) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(position: int, change: int) -> None:
    data = bytearray(encode(WHOLE))
    data[position] ^= change
    with pytest.raises(BadInput):
        decode(bytes(data))


def test_programs_and_python_refuse_the_same_files(reader: Path, tmp_path: Path) -> None:
    whole = encode(WHOLE)
    path = tmp_path / "limits"
    for data in (b"", whole[:-1], whole + b"\0", whole[:100], bytes(len(whole)), whole[::-1]):
        path.write_bytes(data)
        assert verdict(reader, path) != "sound"
        with pytest.raises(BadInput):
            read_limits(path)


def sealed(**changes: int) -> bytes:
    """A limits file with a right checksum whose fields are wrong."""
    record = layout.LimitsFile.from_buffer_copy(encode(WHOLE))
    for name, value in changes.items():
        setattr(record if hasattr(record, name) else record.devices[0], name, value)
    record.checksum = 0
    record.checksum = layout.checksum(bytes(record))
    return bytes(record)


@pytest.mark.parametrize(
    "changes",
    [
        {"memory_bytes": 0}, {"cores_percent": 101}, {"most_percent": 101}, {"cores_percent": 9, "most_percent": 8},
        {"compute_policy": 3}, {"compute_policy": 1}, {"device_count": 0},
        {"device_count": 17}, {"device_count": 2}, {"version": 2}, {"magic": 1}, {"size": 1}, {"flags": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_right_checksum_does_not_make_nonsense_sound(changes: dict[str, int], reader: Path, tmp_path: Path) -> None:
    path = tmp_path / "limits"
    path.write_bytes(sealed(**changes))
    assert verdict(reader, path) != "sound"


def test_a_missing_file_is_an_error_of_the_outside(tmp_path: Path) -> None:
    with pytest.raises(Outside, match="limits"):
        read_limits(tmp_path / "limits")
