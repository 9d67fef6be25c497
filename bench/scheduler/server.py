"""The control part over a `BenchKube`, as a process of its own: `python -m bench.scheduler.server NODES PODS FILE`."""

import asyncio
import sys
from pathlib import Path

from bench.scheduler.kube import BenchKube
from lamina.control.run import serve
from lamina.control.settings import Address, ControlSettings


def main() -> None:
    nodes, pods, file = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    free = Address("127.0.0.1", 0)
    settings = ControlSettings(extender=free, admission=free, addresses_file=file)
    asyncio.run(serve(BenchKube(nodes, pods), settings, asyncio.Event()))


if __name__ == "__main__":
    main()
