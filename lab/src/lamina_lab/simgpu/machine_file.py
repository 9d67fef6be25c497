"""Writes a machine file from a description, and the environment of its processes."""

import ctypes
import os
import zlib
from pathlib import Path

from lamina_lab.simgpu import layout, mig_units, native
from lamina_lab.simgpu.description import MAX_GPUS, Machine, PlacedGpu, bus_numbers, check, place


def write(machine: Machine, path: Path) -> None:
    """Write the machine file atomically, readable by its owner only.

    Processes that use an older file of that name stay on the older machine. Raises BadInput as `check` does.
    """
    check(machine)
    gpus = place(machine)
    cut = [gpu.index for gpu in gpus if mig_units.card_of(gpu) is not None]
    units = len(gpus) + layout.MIG_UNITS * len(cut)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate(layout.file_size(units))
        file.write(bytes(_header(machine, len(gpus), units)))
        for gpu in gpus:
            file.seek(layout.gpu_offset(gpu.index))
            record = _record(gpu)
            if gpu.index in cut:
                mig_units.describe(record, gpu, len(gpus) + layout.MIG_UNITS * cut.index(gpu.index))
            file.write(bytes(record))
    temporary.replace(path)


def describes(path: Path, machine: Machine) -> bool:
    """Whether the file is of such a machine, with whatever UUIDs. Raises OSError where there is none."""
    with path.open("rb") as file:
        header = file.read(layout.HEADER_BYTES)
        if len(header) < layout.HEADER_BYTES:
            return False
        described = layout.Header.from_buffer_copy(header)
        models = []
        for number in range(min(described.gpu_count, MAX_GPUS)):
            file.seek(layout.gpu_offset(number))
            models.append(layout.GpuRecord.from_buffer_copy(file.read(layout.RECORD_BYTES)).model.decode())
    wanted = [gpu.card.key for gpu in place(machine)]
    return (models, described.cuda_version, described.version) == (wanted, machine.cuda_number, layout.VERSION)


def environment(path: Path) -> dict[str, str]:
    """Environment variables that put a process on the machine of this file."""
    return {"SIMGPU_MACHINE": str(path), "LD_LIBRARY_PATH": str(driver_folder())}


def library(name: str) -> Path:
    """A library of the simulated driver, such as ``libcuda.so.1``. Raises LaminaError if it is not built."""
    return native.path(f"simgpu/{name}")


def driver_folder() -> Path:
    """The directory of the simulated driver's libraries."""
    return library("libcuda.so.1").parent


def _header(machine: Machine, gpus: int, units: int) -> layout.Header:
    return layout.Header(
        magic=layout.MAGIC,
        version=layout.VERSION,
        gpu_count=gpus,
        unit_count=units,
        cuda_version=machine.cuda_number,
        init_us=machine.init_us,
        unified=machine.unified_memory,
        context_us=machine.context_us,
        allocation_us=machine.allocation_us,
        size=layout.file_size(units),
        kernel_ns=machine.kernel_ns,
        host_mib=machine.host_memory_mib,
        processes=layout.HEADER_BYTES,
        gpus=layout.gpu_offset(0),
        gpu_stride=layout.GPU_STRIDE,
        driver=machine.driver.encode(),
        nvml=f"{machine.cuda_number // 1000}.{machine.driver}".encode(),
    )


def _record(gpu: PlacedGpu) -> layout.GpuRecord:
    card, spec = gpu.card, gpu.spec
    domain, bus, device = bus_numbers(gpu.bus_id)
    record = layout.GpuRecord(
        uuid=gpu.uuid.encode(),
        name=card.name.encode(),
        bus_id=gpu.bus_id.encode(),
        serial=f"{zlib.crc32(gpu.uuid.encode()) + (1 << 40):013d}".encode(),
        model=card.key.encode(),
        numa=gpu.numa,
        nvlinks=card.nvlinks if spec.nvlinks is None else spec.nvlinks,
        bridge=spec.bridge,
    )
    numbers = {
        "index": gpu.index,
        "memory_mib": card.memory_mib,
        "context_mib": card.context_bytes >> 20,
        "sm_count": card.sms,
        "compute_major": card.compute[0],
        "compute_minor": card.compute[1],
        "threads_per_sm": card.threads_per_sm,
        "cuda_cores": card.sms * card.cores_per_sm,
        "architecture": card.architecture,
        "brand": card.brand,
        "power_limit_mw": card.power_limit * 1000,
        "power_idle_mw": (card.power_idle if spec.idle_watts is None else spec.idle_watts) * 1000,
        "temperature": spec.temperature,
        "pci_device": card.pci_device << 16 | 0x10DE,
        "pci_subsystem": 0x124910DE,
        "pci_domain": domain,
        "pci_bus": bus,
        "pci_slot": device,
        "pcie_generation": card.pcie_generation,
        "sm_clock_mhz": card.sm_clock,
        "memory_clock_mhz": card.memory_clock,
        "bus_width": card.bus_width,
        "l2_bytes": card.l2_kib * 1024,
        "ecc": layout.NO_ECC if card.ecc is None else int(card.ecc),
        "persistence": int(spec.persistence),
        "mig_capable": int(mig_units.card_of(gpu) is not None),
        "bar1_mib": 1 << (card.memory_mib - 1).bit_length(),
        "shared_per_sm": card.shared_per_sm_kib * 1024,
        "default_slice_us": spec.time_slice_us,
        "switch_us": spec.switch_us,
    }
    for name, value in numbers.items():
        setattr(record, name, int(value))
    return record


assert ctypes.sizeof(layout.GpuRecord) <= layout.RECORD_BYTES
