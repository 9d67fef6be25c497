"""Prices of GPUs by model, and of their parts."""

from lamina.core.prices import GpuPrice, Pricing

PRICES = Pricing(
    gpus=(GpuPrice(model="A100-SXM4-80GB", per_hour=4), GpuPrice(model="A100", per_hour=2)), memory_percent=75
)


def test_the_first_model_that_is_part_of_the_name_counts() -> None:
    assert PRICES.per_hour("NVIDIA A100-SXM4-80GB", "memory") == 3
    assert PRICES.per_hour("NVIDIA A100-PCIE-40GB", "memory") == 1.5
    assert PRICES.per_hour("Tesla T4", "memory") is None


def test_memory_and_compute_are_the_whole_price() -> None:
    assert PRICES.per_hour("A100-SXM4-80GB", "compute") == 1
    assert Pricing(gpus=PRICES.gpus).per_hour("A100", "compute") == 1
