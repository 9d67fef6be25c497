"""A wasteful controller, for null controls: `python -m bench.scheduler.wasteful KUBECONFIG FILE`.

It takes long to start and much memory, computes for a while before each answer, and reads each pod again and again.
"""

import time

from bench.scheduler.server import main
from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.binder import Binder
from lamina.controller.scheduling.scheduler import FilterResult, Scheduler
from lamina.controller.scheduling.scores import NodeScores
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PODS

_ANSWER_S = 0.04
_START_S = 6.0
_MEMORY = 600 * 2**20
_READS = 3


class _WastefulDecisions(Scheduler):
    def filter(self, pod: ParsedPod, nodes: list[str]) -> FilterResult:
        _compute()
        return super().filter(pod, nodes)

    def scores(self, pod: ParsedPod, nodes: list[str]) -> NodeScores:
        _compute()
        return super().scores(pod, nodes)


class _WastefulBinder(Binder):
    async def bind(self, args: BindArgs) -> str:
        for _ in range(_READS):
            await self._kube.get(PODS, args.podName, namespace=args.podNamespace)
        return await super().bind(args)


def _compute() -> None:
    until = time.perf_counter() + _ANSWER_S
    while time.perf_counter() < until:
        pass


if __name__ == "__main__":
    from lamina.controller import assembly

    assembly.Scheduler = _WastefulDecisions  # type: ignore[misc]
    assembly.Binder = _WastefulBinder  # type: ignore[misc]
    time.sleep(_START_S)
    kept = bytearray(b"x" * _MEMORY)
    main()
