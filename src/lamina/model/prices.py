"""What GPUs cost by the hour, and how a price is divided between memory and compute."""

from msgspec import Struct


class GpuPrice(Struct, frozen=True, kw_only=True):
    """The price of GPUs whose model contains `model`."""

    model: str
    per_hour: float


class Pricing(Struct, frozen=True, kw_only=True):
    """`memory_percent` of a price is that of a GPU's memory, the rest that of its compute."""

    currency: str = ""
    gpus: tuple[GpuPrice, ...] = ()
    memory_percent: int = 50
    labels: tuple[str, ...] = ()
    """Labels of pods whose values have accounts."""

    def per_hour(self, model: str, part: str) -> float | None:
        """The price of all `memory` or all `compute` of a GPU; None if its model has no price. The first one counts."""
        price = next((each.per_hour for each in self.gpus if each.model in model), None)
        if price is None:
            return None
        return price * (self.memory_percent if part == "memory" else 100 - self.memory_percent) / 100
