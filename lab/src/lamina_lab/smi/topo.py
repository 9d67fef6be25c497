"""`nvidia-smi topo -m`: how each GPU is connected to the others and to the processors."""

import os
from collections.abc import Sequence

import pynvml

from lamina.ports.nvml import links
from lamina_lab.smi.machine import SmiGpu, ask

PER_LINK = 100
WORDS = {10: "SYS", 20: "NODE", 30: "PHB", 40: "PXB", 50: "PIX"}
"""How a path over PCIe is named, by its score."""
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks"""
WORD_BITS = 64


def matrix_lines(gpus: Sequence[SmiGpu]) -> list[str]:
    """The matrix, with the processors and the memory that are near each GPU."""
    scores = links.scores([gpu.handle for gpu in gpus])
    head = ["", *(f"GPU{gpu.index}" for gpu in gpus), "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
    lines = ["\t".join(head)]
    for gpu, row in zip(gpus, scores, strict=True):
        cells = [" X " if other is gpu else word(score) for other, score in zip(gpus, row, strict=True)]
        lines.append("\t".join([f"GPU{gpu.index}", *cells, _processors(gpu), _memory(gpu), "\tN/A"]))
    return [*lines, *LEGEND.splitlines()]


def word(score: int) -> str:
    """The connection of a score: NVLinks before PCIe."""
    return f"NV{score // PER_LINK}" if score >= PER_LINK else WORDS.get(score, "N/A")


def ranges(numbers: Sequence[int]) -> str:
    """Numbers in order as the kernel writes them: 0-3,8."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _processors(gpu: SmiGpu) -> str:
    words = -(-(os.cpu_count() or 1) // WORD_BITS)
    return _bits(ask(pynvml.nvmlDeviceGetCpuAffinity, gpu.handle, words))


def _memory(gpu: SmiGpu) -> str:
    return _bits(ask(pynvml.nvmlDeviceGetMemoryAffinity, gpu.handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE))


def _bits(words: Sequence[int] | None) -> str:
    found = [WORD_BITS * i + bit for i, mask in enumerate(words or ()) for bit in range(WORD_BITS) if mask >> bit & 1]
    return ranges(found) or "N/A"
