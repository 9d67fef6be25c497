"""OpenTelemetry's names for GPUs: metrics alone, as no manifest has any.

hw_gpu_..., hw_temperature_celsius, hw_power_watts      the semantic conventions for hardware
"""

from lamina.dialects.opentelemetry.dialect import OpenTelemetryDialect

__all__ = ["OpenTelemetryDialect"]
