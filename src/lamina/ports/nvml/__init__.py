"""The port to NVML: the GPUs of the node, their processes, and their errors.

`protocol` says what can be asked, `driver` asks the real library, `fake` is a small one for tests.
"""

from lamina.ports.nvml.driver import DriverNvml
from lamina.ports.nvml.fake import FakeNvml
from lamina.ports.nvml.protocol import GpuFacts, GpuProcess, GpuReading, MigInstanceFacts, Nvml, XidEvent

__all__ = ["DriverNvml", "FakeNvml", "GpuFacts", "GpuProcess", "GpuReading", "MigInstanceFacts", "Nvml", "XidEvent"]
