"""The description of a simulated machine in YAML: its driver and its GPUs.

driver: "515.86.01"
cuda: "11.7"
seed: node-1                 UUIDs derive from it; machines with the same seed have the same UUIDs
gpus:
- model: V100-PCIE-32GB      a key or NVML name of lamina.core.cards
  count: 2
"""

import re
import uuid

import msgspec
from msgspec import Struct, field

from lamina.core.card_model import Card
from lamina.core.cards import card
from lamina.errors import BadInput

MAX_GPUS = 16
MAX_NVLINKS = 18
MAX_SLICE_US = 33_000
MAX_SWITCH_US = 10_000
_DRIVER = re.compile(r"\d{3}(\.\d{1,3}){1,2}")
_CUDA = re.compile(r"(\d{1,2})\.(\d)")
_BUS_ID = re.compile(r"([0-9A-F]{8}):([0-9A-F]{2}):([0-1][0-9A-F])\.[0-7]", re.IGNORECASE)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class GpuSpec(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One GPU, or `count` equal ones. Missing fields come from the card and the machine's seed."""

    model: str
    """The card, see the list below."""
    count: int = 1
    """How many equal GPUs."""
    uuid: str = ""
    """UUID; made from the name of the node and the index where it is left out."""
    bus_id: str = ""
    """PCI address such as ``00000000:D8:00.0``."""
    numa: int | None = None
    """NUMA node."""
    persistence: bool = True
    """Persistence mode."""
    temperature: int = 30
    """Degrees Celsius while idle."""
    idle_watts: int | None = None
    """Watts while idle; the card's own where it is left out."""
    nvlinks: int | None = None
    """NVLinks of the GPU: to a switch, or to the other GPUs of its `bridge`."""
    bridge: int = 0
    """GPUs with the same number above 0 are linked directly, without a switch."""
    time_slice_us: int = 0
    """How long a process has the GPU at most while others wait, at the default setting; 0 stands for 2 ms."""
    switch_us: int = 0
    """How long nothing runs when another process gets its turn: about 150 on an H200."""


class Machine(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A simulated machine. `kernel_ns` is the duration of a kernel that does not set its own. `init_us`, `context_us`
    and `allocation_us` are how long the driver takes to initialize in a process, to create a context and to allocate
    memory. GPUs with `unified_memory` use the host's, as in a DGX Spark: NVML has no figure of it.
    """

    gpus: tuple[GpuSpec, ...]
    driver: str = "515.86.01"
    cuda: str = "11.7"
    seed: str = "lamina"
    host_memory_mib: int = field(default=65536, name="hostMemoryMiB")
    """The amount of managed memory that may be on the host, for all GPUs together."""
    kernel_ns: int = 10_000
    init_us: int = 0
    context_us: int = 0
    allocation_us: int = 0
    unified_memory: bool = False

    @property
    def cuda_number(self) -> int:
        """The version as cuDriverGetVersion returns it: 11070 for 11.7."""
        major, minor = self.cuda.split(".")
        return int(major) * 1000 + int(minor) * 10


class PlacedGpu(Struct, frozen=True, kw_only=True):
    """One GPU with all values set."""

    index: int
    card: Card
    spec: GpuSpec
    uuid: str
    bus_id: str
    numa: int


def parse(text: str | bytes) -> Machine:
    """Parse a description in YAML or JSON. Raises BadInput if it is not valid."""
    try:
        machine = msgspec.yaml.decode(text, type=Machine)
    except msgspec.ValidationError as wrong:
        raise BadInput(f"machine description: {wrong}") from wrong
    except msgspec.DecodeError as wrong:
        raise BadInput(f"the machine description is not YAML: {' '.join(str(wrong).split())}") from wrong
    check(machine)
    return machine


def check(machine: Machine) -> None:
    """Raises BadInput if the machine is not possible."""
    if not _DRIVER.fullmatch(machine.driver):
        raise BadInput(f"driver {machine.driver!r} is not a driver version; write one like 515.86.01")
    if not _CUDA.fullmatch(machine.cuda):
        raise BadInput(f"cuda {machine.cuda!r} is not a CUDA version; write one like 11.7")
    for name in ("kernelNs", "hostMemoryMiB", "initUs", "contextUs", "allocationUs"):
        if not 0 <= msgspec.to_builtins(machine)[name] < 1 << 32:
            raise BadInput(f"{name} must not be negative, nor {1 << 32} or more")
    for number, spec in enumerate(machine.gpus):
        _check_spec(f"gpus[{number}]", spec)
    total = sum(spec.count for spec in machine.gpus)
    if total > MAX_GPUS:
        raise BadInput(f"the machine has {total} GPUs; a simulated one has at most {MAX_GPUS}")
    for what in ("uuid", "bus_id"):
        values = [getattr(gpu, what) for gpu in place(machine)]
        for value in values:
            if values.count(value) > 1:
                raise BadInput(f"two GPUs have the {what.replace('_', ' ')} {value}")


def _check_spec(where: str, spec: GpuSpec) -> None:
    card(spec.model)
    if spec.count < 1:
        raise BadInput(f"{where}.count is {spec.count}; it must be at least 1")
    if spec.count > 1 and (spec.uuid or spec.bus_id):
        raise BadInput(f"{where} has count {spec.count}, so it cannot have one uuid or busId; list the GPUs separately")
    if spec.uuid and not _UUID.fullmatch(spec.uuid):
        raise BadInput(f"{where}.uuid {spec.uuid!r} must be GPU- and a lower-case UUID")
    if spec.bus_id and not _BUS_ID.fullmatch(spec.bus_id):
        raise BadInput(f"{where}.busId {spec.bus_id!r} must be a PCI address like 00000000:D8:00.0")
    if not 0 <= spec.temperature <= 120:
        raise BadInput(f"{where}.temperature is {spec.temperature}; it must be 0 to 120 degrees Celsius")
    if not 0 <= spec.bridge <= MAX_GPUS:
        raise BadInput(f"{where}.bridge is {spec.bridge}; it must be 0 to {MAX_GPUS}")
    if spec.nvlinks is not None and not 0 <= spec.nvlinks <= MAX_NVLINKS:
        raise BadInput(f"{where}.nvlinks is {spec.nvlinks}; it must be 0 to {MAX_NVLINKS}")
    if spec.time_slice_us != 0 and not 100 <= spec.time_slice_us <= MAX_SLICE_US:
        raise BadInput(f"{where}.timeSliceUs is {spec.time_slice_us}; it must be 100 to {MAX_SLICE_US}, or 0 for 2 ms")
    if not 0 <= spec.switch_us <= MAX_SWITCH_US:
        raise BadInput(f"{where}.switchUs is {spec.switch_us}; it must be 0 to {MAX_SWITCH_US}")
    if spec.numa is not None and spec.numa < 0:
        raise BadInput(f"{where}.numa is {spec.numa}; it must not be negative")


def place(machine: Machine) -> tuple[PlacedGpu, ...]:
    """The machine's GPUs in order, with UUID, PCI address and NUMA node."""
    singles = [spec for spec in machine.gpus for _ in range(spec.count)]
    return tuple(
        PlacedGpu(
            index=index,
            card=card(spec.model),
            spec=spec,
            uuid=spec.uuid or f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, f'lamina:{machine.seed}:{index}')}",
            bus_id=spec.bus_id.upper() or f"00000000:{0x0A + 0x0F * index:02X}:00.0",
            numa=spec.numa if spec.numa is not None else index * 2 // max(2, len(singles)),
        )
        for index, spec in enumerate(singles)
    )


def bus_numbers(bus_id: str) -> tuple[int, int, int]:
    """PCI domain, bus and device of an address that `check` accepted."""
    found = _BUS_ID.fullmatch(bus_id)
    if found is None:
        raise BadInput(f"{bus_id!r} is not a PCI address")
    domain, bus, device = (int(part, 16) for part in found.groups())
    return domain, bus, device
