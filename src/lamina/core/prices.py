"""What GPUs cost by the hour, and how a price is divided between memory and compute."""

from typing import Annotated

from lamina.core.field_types import Currency, Group, LabelKeys, ModelPart, Percent, Price, doc


class GpuPrice(Group, frozen=True, kw_only=True):
    """The price of GPUs of one model."""

    model: Annotated[ModelPart, doc("GPUs whose model, as `lamina gpus` shows it, contains this have the price.")]
    per_hour: Annotated[Price, doc("Price of one GPU for an hour.", unit="currency")]


class Pricing(Group, frozen=True, kw_only=True):
    """What GPUs cost, and for whom it is counted. `lamina cost` and the metrics of agents use it."""

    currency: Annotated[
        Currency, doc("Currency of all prices, as it is shown.", reason="Lamina does not know what GPUs cost.")
    ] = ""
    gpus: Annotated[
        tuple[GpuPrice, ...],
        doc(
            "Prices by model; the first that applies counts. GPUs without one have no cost.",
            reason="Lamina does not know what GPUs cost.",
        ),
    ] = ()
    memory_percent: Annotated[
        Percent,
        doc(
            "Part of a GPU's price that its memory has; its compute has the rest.",
            unit="%",
            reason="A pod keeps others from both, and most request the same part of both.",
        ),
    ] = 50
    labels: Annotated[
        LabelKeys,
        doc(
            "Labels of pods whose values have accounts of their own, for `lamina cost --by label`.",
            reason="Each label adds series for each of its values.",
        ),
    ] = ()

    def per_hour(self, model: str, part: str) -> float | None:
        """The price of all `memory` or all `compute` of a GPU; None if its model has no price. The first one counts."""
        price = next((each.per_hour for each in self.gpus if each.model in model), None)
        if price is None:
            return None
        return price * (self.memory_percent if part == "memory" else 100 - self.memory_percent) / 100
