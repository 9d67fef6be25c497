"""The port to the length of turns on a GPU.

NVML has no call for it, neither in nvidia-ml-py nor in the headers of CUDA 13, so `nvidia-smi compute-policy` is the
way, as in NVIDIA's own DRA driver. It is write-only: the format of its listing is not documented.
"""

import asyncio
from typing import Protocol

from lamina.core.sharing import TimeSlice
from lamina.errors import Outside

_PATIENCE_S = 30.0


class TimeSlices(Protocol):
    """The time slices of one node's GPUs."""

    async def set(self, uuid: str, length: TimeSlice) -> None:
        """Have turns on a GPU be of this length. To say so again changes nothing. Raises Outside."""
        ...


class NvidiaSmi:
    """By nvidia-smi, which the PATH leads to."""

    async def set(self, uuid: str, length: TimeSlice) -> None:
        command = ("nvidia-smi", "compute-policy", "-i", uuid, f"--set-timeslice={length.number}")
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
        except OSError as error:
            raise Outside(f"nvidia-smi cannot be run: {error.strerror}") from error
        try:
            output, _ = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
        except TimeoutError as error:
            raise Outside(f"nvidia-smi did not set the time slice of {uuid} within {_PATIENCE_S:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            first = output.decode(errors="replace").strip().partition("\n")[0]
            raise Outside(
                f"nvidia-smi does not set the time slice of {uuid}: {first or f'it ended with {process.returncode}'}"
            )


class FakeTimeSlices:
    """`lengths` is what holds. While `broken` is a sentence, every call fails with it."""

    def __init__(self) -> None:
        self.lengths: dict[str, TimeSlice] = {}
        self.calls = 0
        self.broken = ""

    async def set(self, uuid: str, length: TimeSlice) -> None:
        self.calls += 1
        if self.broken:
            raise Outside(self.broken)
        self.lengths[uuid] = length
