"""A controller that holds no room for the nodes it answers, and binds late: `python -m bench.scheduler.forgetful ...`.

The null control of binds that are refused because their room was given away. It takes the arguments of `server`.
"""

import asyncio

from bench.scheduler.server import main
from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.binder import Binder
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.ledger.pods import ParsedPod

_LATE_S = 0.3


class _Forgetful(AssumedPods):
    def assume(self, pod: ParsedPod, node: str) -> None:
        self.withdraw(pod.uid)


class _Late(Binder):
    async def bind(self, args: BindArgs) -> str:
        await asyncio.sleep(_LATE_S)
        return await super().bind(args)


if __name__ == "__main__":
    from lamina.controller import assembly

    assembly.AssumedPods = _Forgetful  # type: ignore[misc]
    assembly.Binder = _Late  # type: ignore[misc]
    main()
