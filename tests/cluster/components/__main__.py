"""A cluster to look around in: `python -m tests.cluster.components [--lamina]`, until the terminal says stop.

`--check` says whether this machine can have one, and ends with 1 where it cannot.
"""

import signal
import sys
from contextlib import suppress

from lamina_lab import simgpu
from tests.cluster.components import binaries, fitness
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import Processes
from tests.cluster.components.steps import Steps
from tests.cluster.conftest import MACHINE


def main() -> None:
    if "--check" in sys.argv:
        try:
            fitness.check()
        except Unavailable as error:
            sys.exit(str(error))
        return
    steps = Steps()
    try:
        binaries.given()
    except Unavailable as error:
        sys.exit(str(error))
    cluster = RealCluster([simgpu.parse(MACHINE.format(name=name)) for name in ("node1", "node2")], steps)
    try:
        if "--lamina" in sys.argv:
            with steps("Lamina"):
                Processes(cluster).start()
        enter = " ".join(cluster.control.sandbox.command())
        kubectl = f"{enter} {cluster.binaries['kubectl']} --kubeconfig {cluster.control.kubeconfig}"
        print(f"files:   {cluster.folder}\nkubectl: {kubectl}")
        for node in cluster.nodes:
            print(f"{node.name}:   {' '.join(node.sandbox.command('bash'))}")
        with suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
