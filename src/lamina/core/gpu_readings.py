"""What a GPU or MIG device says of itself at one moment."""

from msgspec import Struct

WORK_LATELY_S = 1.2
"""For so long before it is asked, the driver says how much processes worked. It takes a sample every 1/6 to 1 s, and
answers with the average of those since then."""


class GpuReading(Struct, frozen=True, kw_only=True):
    """Bytes, percent of the last moments, degrees Celsius, watts; None where the driver does not say."""

    bus_id: str = ""
    used_bytes: int | None = None
    free_bytes: int | None = None
    busy_percent: int | None = None
    memory_busy_percent: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None

    @property
    def total_bytes(self) -> int | None:
        return None if self.used_bytes is None or self.free_bytes is None else self.used_bytes + self.free_bytes
