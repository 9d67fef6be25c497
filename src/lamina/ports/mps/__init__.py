"""The port to NVIDIA's MPS: the control daemon of each GPU, started and asked through `nvidia-cuda-mps-control`.

`protocol` says what can be asked, `program` runs the real program, `fake` is a small one for tests.
"""

from lamina.ports.mps.fake import FakeMps
from lamina.ports.mps.program import ControlProgram
from lamina.ports.mps.protocol import Hangs, Home, Mps

__all__ = ["ControlProgram", "FakeMps", "Hangs", "Home", "Mps"]
