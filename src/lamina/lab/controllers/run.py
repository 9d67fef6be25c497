"""All controllers of the lab, running over one cache until they are cancelled."""

import asyncio

from lamina.lab.controllers.daemonsets import DaemonSets
from lamina.lab.controllers.deployments import Deployments
from lamina.lab.controllers.hands import Hands
from lamina.lab.controllers.jobs import Jobs
from lamina.lab.controllers.kinds import WATCHED
from lamina.lab.controllers.loop import Controller, Loop
from lamina.lab.controllers.node_plan import GRACE_S
from lamina.lab.controllers.nodes import Nodes
from lamina.lab.controllers.replicasets import ReplicaSets
from lamina.lab.informer.cache import Cache
from lamina.lab.informer.supervise import supervise
from lamina.ports.clock import Clock
from lamina.ports.kube import Kube


async def run(kube: Kube, clock: Clock, *, node_grace: float = GRACE_S) -> None:
    """Run until cancelled. `node_grace` in seconds is how long a node's kubelet may be silent.

    A controller that breaks is logged and started again; the others go on.
    """
    cache = Cache(kube, WATCHED)

    def hands(component: str) -> Hands:
        return Hands(kube, cache, clock, component)

    controllers: dict[str, Controller] = {
        "deployment-controller": Deployments(hands("deployment-controller")),
        "replicaset-controller": ReplicaSets(hands("replicaset-controller")),
        "daemonset-controller": DaemonSets(hands("daemonset-controller")),
        "job-controller": Jobs(hands("job-controller")),
        "node-controller": Nodes(hands("node-controller"), node_grace),
    }
    async with asyncio.TaskGroup() as group:
        group.create_task(supervise("the controllers' cache", cache.run, clock))
        for name, controller in controllers.items():
            group.create_task(supervise(name, Loop(controller, cache, clock).run, clock))
