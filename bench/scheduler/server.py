"""The controller over a `FakeKube`, as a process of its own: `python -m bench.scheduler.server NODES PODS FILE`."""

import asyncio
import sys
from pathlib import Path

from bench.scheduler.kube import ClusterKube
from lamina.controller.run import serve
from lamina.controller.settings import Address, ControllerSettings
from lamina.ports.clock import SystemClock
from lamina.ports.kube.fake_network import SlowKube

_REQUEST_S = 0.002


def main() -> None:
    nodes, pods, file = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    free = Address("127.0.0.1", 0)
    settings = ControllerSettings(extender_http=free, admission=free, addresses_file=file)
    kube = SlowKube(ClusterKube(nodes, pods), _REQUEST_S)
    asyncio.run(serve(kube, SystemClock(), settings, asyncio.Event()))


if __name__ == "__main__":
    main()
