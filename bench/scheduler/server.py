"""The controller as a process of its own: `python -m bench.scheduler.server KUBECONFIG FILE`."""

import sys
from pathlib import Path

import uvloop

from lamina.controller.run import run
from lamina.controller.settings import ControllerSettings
from lamina.ports.listener import Address


def main() -> None:
    kubeconfig, file = Path(sys.argv[1]), Path(sys.argv[2])
    free = Address("127.0.0.1", 0)
    settings = ControllerSettings(kubeconfig=kubeconfig, extender_http=free, admission=free, addresses_file=file)
    uvloop.run(run(settings))


if __name__ == "__main__":
    main()
