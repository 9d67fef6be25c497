"""A stage to look around in: `python -m tests.cluster.stage [--lamina]`, until the terminal says stop.

`--check` says whether this machine can have one, and ends with 1 where it cannot.
"""

import signal
import sys
from contextlib import suppress

from lamina import simgpu
from tests.cluster.conftest import MACHINE
from tests.cluster.stage import fitness
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.processes import Processes
from tests.cluster.stage.stage import Stage
from tests.cluster.stage.steps import Steps


def main() -> None:
    if "--check" in sys.argv:
        try:
            fitness.check()
        except Unavailable as error:
            sys.exit(str(error))
        return
    steps = Steps()
    stage = Stage([simgpu.parse(MACHINE.format(name=name)) for name in ("node1", "node2")], steps)
    try:
        if "--lamina" in sys.argv:
            with steps("Lamina"):
                Processes(stage).start()
        enter = " ".join(stage.control.room.command())
        kubectl = f"{enter} {stage.binaries['kubectl']} --kubeconfig {stage.control.kubeconfig}"
        print(f"files:   {stage.folder}\nkubectl: {kubectl}")
        for node in stage.nodes:
            print(f"{node.name}:   {' '.join(node.room.command('bash'))}")
        with suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
    finally:
        stage.close()


if __name__ == "__main__":
    main()
