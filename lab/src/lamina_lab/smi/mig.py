"""`nvidia-smi mig` and `-mig`: profiles, GPU instances, compute instances, and the mode."""

import ctypes
from collections.abc import Sequence
from typing import Any

import pynvml

from lamina_lab.smi.machine import SmiGpu, SmiMigDevice, ask

_NO_DEVICES = "No MIG-enabled devices found."
_MAX_INSTANCES = 8


def list_lines(devices: Sequence[SmiMigDevice]) -> list[str]:
    """The lines that `-L` adds below a GPU."""
    return [f"  {'MIG ' + device.profile:<16}Device {device.index:>2}: (UUID: {device.uuid})" for device in devices]


def table_lines(gpus: Sequence[SmiGpu], *, wide: bool) -> list[str]:
    """The table of MIG devices; empty if there is none. With `wide`, in the layout of driver 550."""
    if not any(gpu.devices for gpu in gpus):
        return []
    width = 34 if wide else 22
    seam = f"+{'-' * 18}+{'-' * width}+{'-' * 11}+{'-' * 23}+"
    engines = (
        ("      Shared           ", " CE ENC  DEC  OFA  JPG ")
        if wide
        else ("         Shared        ", " CE  ENC  DEC  OFA  JPG")
    )
    return [
        f"+{'-' * (width + 55)}+",
        f"| {'MIG devices:':<{width + 54}}|",
        seam,
        f"| GPU  GI  CI  MIG |{'Memory-Usage':>{width - 1}} |        Vol|{engines[0]}|",
        f"|      ID  ID  Dev |{'BAR1-Usage':>{width - 1}} | SM     Unc|{engines[1]}|",
        f"|                  |{'':{width}}|        ECC|{'':23}|",
        seam.replace("-", "=").replace("+", "|", 1)[:-1] + "|",
        *[line for gpu in gpus for device in gpu.devices for line in (*_device(gpu, device, wide=wide), seam)],
        " " * (width + 57),
    ]


def _device(gpu: SmiGpu, device: SmiMigDevice, *, wide: bool) -> list[str]:
    copy, decoders, encoders, jpeg, ofa = device.engines
    memory, bar = (f"{used}MiB / {device.memory_total:>5}MiB" for used in (device.memory_used, 0))
    blanks = "    " if wide else " "
    width = (34 if wide else 22) - len(blanks)
    numbers = f"{gpu.index:>3}{device.gi:>5}{device.ci:>4}{device.index:>4}"
    return [
        f"|{numbers}  |{memory:>{width}}{blanks}|{device.sms:>3}{0:>7} "
        f"|{copy:>3}{encoders:>4}{decoders:>5}{ofa:>5}{jpeg:>5} |",
        f"|{'':18}|{bar:>{width}}{blanks}|{'':11}|{'':23}|",
    ]


def profile_lines(gpus: Sequence[SmiGpu]) -> tuple[list[str], bool]:
    """`mig -lgip`, and whether any GPU has MIG enabled."""
    rows = [_profile(gpu, info) for gpu in gpus if gpu.mig for info in _profiles(gpu.handle)]
    if not rows:
        return [_NO_DEVICES], False
    edge = f"+{'-' * 77}+"
    return [
        edge,
        f"| {'GPU instance profiles:':<76}|",
        "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |",
        "|                              Free/Total   GiB              CE    JPEG  OFA  |",
        f"|{'=' * 77}|",
        *[line for row in rows for line in (*row, edge)],
    ], True


def _profiles(handle: Any) -> list[Any]:
    found = [
        ask(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, index)
        for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
    ]
    return [info for info in found if info is not None]


def _profile(gpu: SmiGpu, info: Any) -> list[str]:
    free = pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu.handle, info.id)
    count = f"{free}/{info.instanceCount}"
    return [
        f"| {gpu.index:>3}  {_text(info.name):<18}{info.id:>2}  {count:^9}   {info.memorySizeMB / 1024:>6.2f}       No"
        f"{info.multiprocessorCount:>7}{info.decoderCount:>6}{info.encoderCount:>6}   |",
        f"|{'':55}{info.copyEngineCount:>7}{info.jpegCount:>6}{info.ofaCount:>6}   |",
    ]


def instance_lines(gpus: Sequence[SmiGpu]) -> tuple[list[str], bool]:
    """`mig -lgi`."""
    rows = [
        f"| {gpu.index:>3}  {_text(info.name):<18}{info.id:>4}{instance.id:>9}"
        f"{f'{instance.placement.start}:{instance.placement.size}':>13}     |"
        for gpu in gpus
        if gpu.mig
        for info in _profiles(gpu.handle)
        for instance in (pynvml.nvmlGpuInstanceGetInfo(instance_id) for instance_id in _instances(gpu.handle, info.id))
    ]
    if not rows:
        return [_NO_DEVICES if not any(gpu.mig for gpu in gpus) else "No GPU instances found: Not Found"], False
    edge = f"+{'-' * 55}+"
    return [
        edge,
        f"| {'GPU instances:':<54}|",
        "| GPU   Name             Profile  Instance   Placement  |",
        "|                          ID       ID       Start:Size |",
        f"|{'=' * 55}|",
        *[line for row in rows for line in (row, edge)],
    ], True


def compute_lines(gpus: Sequence[SmiGpu]) -> tuple[list[str], bool]:
    """`mig -lci`."""
    rows = [
        f"| {gpu.index:>3}{device.gi:>7}       {'MIG ' + device.profile:<18}{device.compute_profile:>4}{device.ci:>10}"
        f"{f'0:{device.slices}':>13}     |"
        for gpu in gpus
        for device in gpu.devices
    ]
    if not rows:
        return [_NO_DEVICES if not any(gpu.mig for gpu in gpus) else "No compute instances found: Not Found"], False
    edge = f"+{'-' * 68}+"
    return [
        edge,
        f"| {'Compute instances:':<67}|",
        "| GPU     GPU       Name             Profile   Instance   Placement  |",
        "|       Instance                       ID        ID       Start:Size |",
        f"|         ID{'':57}|",
        f"|{'=' * 68}|",
        *[line for row in rows for line in (row, edge)],
    ], True


def set_mode(gpus: Sequence[SmiGpu], on: bool) -> tuple[list[str], bool]:
    """`-mig 0` and `-mig 1`."""
    lines, well = [], True
    word = "Enabled" if on else "Disabled"
    for gpu in gpus:
        try:
            status = pynvml.nvmlDeviceSetMigMode(gpu.handle, int(on))
        except pynvml.NVMLError as error:
            lines.append(f"Unable to set MIG Mode for GPU {gpu.bus_id}: {error}")
            well = False
            continue
        if status:
            pending = f"Warning: MIG mode is in pending {word.lower()[:-1]} state for GPU {gpu.bus_id}"
            lines.append(f"{pending}: In use by another client")
        lines.append(f"{word} MIG Mode for GPU {gpu.bus_id}")
    return [*lines, "All done."], well


def _instances(handle: Any, profile: int) -> list[Any]:
    count = ctypes.c_uint(_MAX_INSTANCES)
    handles = (pynvml.c_nvmlGpuInstance_t * _MAX_INSTANCES)()
    pynvml.nvmlDeviceGetGpuInstances(handle, profile, handles, ctypes.byref(count))
    return list(handles[: count.value])


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
