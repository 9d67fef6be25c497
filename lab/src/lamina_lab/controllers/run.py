"""All controllers of the lab, running on one cache until they are canceled."""

import asyncio

from lamina.ports.clock import Clock
from lamina.ports.kube import Kube
from lamina_lab.controllers.cronjob.controller import CronJobController
from lamina_lab.controllers.daemonset.controller import DaemonSetController
from lamina_lab.controllers.deployment.controller import DeploymentController
from lamina_lab.controllers.device_taint.eviction import DeviceEvictionController
from lamina_lab.controllers.device_taint.progress import TaintProgressController
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import WATCHED
from lamina_lab.controllers.framework.loop import ControllerLoop, Reconciler
from lamina_lab.controllers.job.controller import JobController
from lamina_lab.controllers.node.controller import NodeController
from lamina_lab.controllers.node.plan import GRACE_S
from lamina_lab.controllers.replicaset.controller import ReplicaSetController
from lamina_lab.controllers.resource_claim.of_pods import PodClaimController
from lamina_lab.controllers.resource_claim.release import ClaimReleaseController
from lamina_lab.controllers.statefulset.controller import StatefulSetController
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.supervise import supervise


async def run(kube: Kube, clock: Clock, *, node_grace: float = GRACE_S) -> None:
    """Run until canceled. `node_grace` is how many seconds a node's kubelet may be silent.

    A controller that fails is logged and restarted; the others go on.
    """
    cache = Cache(kube, clock, WATCHED)

    def executor(component: str) -> Executor:
        return Executor(kube, cache, clock, component)

    controllers: dict[str, Reconciler] = {
        "deployment-controller": DeploymentController(executor("deployment-controller")),
        "replicaset-controller": ReplicaSetController(executor("replicaset-controller")),
        "statefulset-controller": StatefulSetController(executor("statefulset-controller")),
        "daemonset-controller": DaemonSetController(executor("daemonset-controller")),
        "cronjob-controller": CronJobController(executor("cronjob-controller")),
        "job-controller": JobController(executor("job-controller")),
        "node-controller": NodeController(executor("node-controller"), node_grace),
        "resourceclaim-controller": PodClaimController(executor("resource_claim")),
        "resourceclaim-release": ClaimReleaseController(executor("resource_claim")),
        "device-taint-eviction": DeviceEvictionController(executor("device-taint-eviction")),
        "device-taint-progress": TaintProgressController(executor("device-taint-eviction")),
    }
    async with asyncio.TaskGroup() as group:
        group.create_task(supervise("the controllers' cache", cache.run, clock))
        for name, controller in controllers.items():
            group.create_task(supervise(name, ControllerLoop(controller, cache, clock).run, clock))
