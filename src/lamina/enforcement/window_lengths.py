"""How long the launch windows of a container are, from its `arbiter` file."""

import ctypes
from pathlib import Path

from lamina.enforcement import layout
from lamina.enforcement.container_files import read_file
from lamina.enforcement.launch_windows import length_us

_US = 1e6


def read_window_lengths(path: Path) -> tuple[float, ...]:
    """For each GPU of the container, for how many seconds of each period it begins launches; 0 where it always may.

    Empty if the file cannot be read.
    """
    size = ctypes.sizeof(layout.ArbiterFile)
    try:
        content = read_file(path, size + 1)
    except OSError:
        return ()
    arbiter = layout.ArbiterFile.from_buffer_copy(content[:size].ljust(size, b"\0"))  # an earlier version is shorter
    count = min(arbiter.device_count, layout.MAX_DEVICES)
    return tuple(length_us(arbiter.lendings[place].window) / _US for place in range(count))
