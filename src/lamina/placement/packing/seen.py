"""What has come so far, in bounded memory: old pods fade."""

from lamina.placement.packing.cluster import Ask

WINDOW = 20_000
"""Pods with GPUs after which all counts are halved, so that the mix follows the last few tens of thousands."""


class Seen:
    """Counts of requests. `arrived` is how many pods with GPUs have come in all."""

    def __init__(self) -> None:
        self.counts: dict[Ask, int] = {}
        self.arrived = 0
        self._room = WINDOW

    def add(self, ask: Ask) -> None:
        self.counts[ask] = self.counts.get(ask, 0) + 1
        if not ask.gpus:
            return
        self.arrived += 1
        self._room -= 1
        if not self._room:
            self.counts = {ask: n // 2 for ask, n in self.counts.items() if n > 1}
            self._room = WINDOW // 2
