"""The port to NVIDIA's MPS: the control daemon of each GPU.

`protocol` says what can be asked, `program` runs NVIDIA's program, `service_client` asks the MPS service of the node in
the messages of `messages`, and `fake` is a small one for tests.
"""

from lamina.ports.mps.fake import FakeMps
from lamina.ports.mps.program import ControlProgram
from lamina.ports.mps.protocol import Hangs, Home, Mps, MpsServiceDown
from lamina.ports.mps.service_client import MpsServiceClient

__all__ = ["ControlProgram", "FakeMps", "Hangs", "Home", "Mps", "MpsServiceClient", "MpsServiceDown"]
