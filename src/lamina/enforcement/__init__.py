"""Limits and usage of a container, seen from Python: written before it starts, read while it runs.

write_container(folder, Limits(devices=(DeviceLimit(uuid=..., memory_bytes=...),)))
read_usage(folder / "usage")
environment(folder, driver)       what a plain process tree needs to be held, without a container
run(command, memory="5120Mi")     all of it for one command
"""

from lamina.enforcement.environment import environment
from lamina.enforcement.files import write_container
from lamina.enforcement.limits import DeviceLimit, Limits, read_limits
from lamina.enforcement.usage import DeviceUsage, ProcessUsage, Usage, read_usage

__all__ = [
    "DeviceLimit", "DeviceUsage", "Limits", "ProcessUsage", "Usage", "environment", "read_limits", "read_usage",
    "write_container",
]  # fmt: skip
