"""How worn a GPU's memory is: pages that the driver retired, and errors of SRAM that ECC could not correct.

Cards before Ampere retire pages, later ones remap rows; each kind has no answer to the other's question.
"""

from typing import Any

import pynvml as nvml

_CAUSES = (
    nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
    nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
)


def retired_pages(handle: Any) -> int | None:
    """Pages retired for errors of either kind; None where the GPU does not tell."""
    try:
        return sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in _CAUSES)
    except nvml.NVMLError:
        return None


def sram_errors(handle: Any) -> int | None:
    """Errors of SRAM in the GPU's life that could not be corrected; None where the GPU does not tell."""
    try:
        return int(
            nvml.nvmlDeviceGetMemoryErrorCounter(
                handle,
                nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                nvml.NVML_AGGREGATE_ECC,
                nvml.NVML_MEMORY_LOCATION_SRAM,
            )
        )
    except nvml.NVMLError:
        return None
