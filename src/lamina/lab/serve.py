"""The supervisor of a lab: `python -m lamina.lab.serve DIRECTORY`.

It hosts the API server, the controllers and the scheduler loop, keeps the lab's other processes running, and tells in
the lab's status how far it is. It ends on SIGTERM; a guard that it starts first cleans up behind it in any case.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from lamina import simgpu
from lamina.dialects import config as configuration
from lamina.errors import LaminaError
from lamina.lab import commands, operator_objects, programs, status
from lamina.lab.api import server
from lamina.lab.api.kubelets import UnixKubelets
from lamina.lab.children import Child, keep_running
from lamina.lab.controllers.run import run as run_controllers
from lamina.lab.directory import LabDirectory
from lamina.lab.informer.in_process import InProcess
from lamina.lab.plan import Plan
from lamina.lab.readiness import readiness
from lamina.lab.scheduling import schedule
from lamina.lab.status import Phase, Status
from lamina.ports.clock import SystemClock
from lamina.ports.kube import CONFIG_MAPS, Kube

log = logging.getLogger(__name__)

NAMESPACE, CONFIG_NAME, CONFIG_KEY = "lamina-system", "lamina", "lamina.yaml"
_POLL_S = 0.05


def start_guard(directory: LabDirectory) -> int:
    """Start the guard; the lab is swept when the returned write end of its pipe closes, at the latest with us."""
    read_end, write_end = os.pipe()
    subprocess.Popen(
        [sys.executable, "-m", "lamina.lab.guard", str(directory.root), str(read_end)],
        pass_fds=(read_end,),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_end)
    return write_end


async def supervise(directory: LabDirectory, plan: Plan) -> None:
    """Run the lab until this task is cancelled."""
    sockets = {node.name: directory.node(index).kubelet_api for index, node in enumerate(plan.nodes)}
    kubelets = UnixKubelets(sockets.get)
    api = await server.serve(kubelets, port=plan.port)
    try:
        api.write_kubeconfig(directory.kubeconfig)
        account = Status(phase=Phase.STARTING, pid=os.getpid(), url=api.url, message="the control part")
        status.write(directory, account)
        _furnish(directory, plan)
        kube = InProcess(api.api, "system:lab-supervisor")
        await _publish_configuration(kube, directory)
        await operator_objects.publish(kube)
        async with asyncio.TaskGroup() as group:
            for child in _children(directory, plan):
                group.create_task(keep_running(child))
            group.create_task(run_controllers(InProcess(api.api, "system:lab-controllers"), SystemClock()))
            group.create_task(schedule(InProcess(api.api, "system:lab-scheduler"), directory))
            group.create_task(_tell_progress(kube, directory, plan, account))
    finally:
        await api.close()
        await kubelets.close()


def _furnish(directory: LabDirectory, plan: Plan) -> None:
    """Make what lies on the disks: programs, and each node's folders and simulated machine."""
    programs.install(directory.programs, directory.image_root)
    for index, node in enumerate(plan.nodes):
        disk = directory.node(index)
        for folder in (disk.kubelet, disk.cdi, disk.agent_state):
            folder.mkdir(parents=True)
        simgpu.write(node.machine(plan), disk.machine)


def _children(directory: LabDirectory, plan: Plan) -> list[Child]:
    children = [commands.control(directory)]
    for index, node in enumerate(plan.nodes):
        disk = directory.node(index)
        children.append(commands.kubelet(directory, disk, node))
        children.append(commands.agent(directory, disk, node.name))
    return children


async def _publish_configuration(kube: Kube, directory: LabDirectory) -> None:
    """As an installation does: the configuration is a ConfigMap, and everybody who needs it reads it there."""
    await kube.create(
        CONFIG_MAPS,
        {"metadata": {"name": CONFIG_NAME}, "data": {CONFIG_KEY: directory.config.read_text()}},
        namespace=NAMESPACE,
    )


async def _tell_progress(kube: Kube, directory: LabDirectory, plan: Plan, account: Status) -> None:
    config = configuration.load(directory.config.read_text(), str(directory.config))
    while (waiting_for := await readiness(kube, directory, plan, config)) is not None:
        if waiting_for != account.message:
            account = msgspec.structs.replace(account, message=waiting_for)
            status.write(directory, account)
        await asyncio.sleep(_POLL_S)
    status.write(directory, msgspec.structs.replace(account, phase=Phase.READY, message=""))
    log.info("the lab is ready at %s", account.url)


async def run(directory: LabDirectory) -> int:
    """The whole life of a supervisor; returns its exit code."""
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=Plan)
    lab = asyncio.ensure_future(supervise(directory, plan))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, lab.cancel)
    try:
        await lab
    except asyncio.CancelledError:
        status.write(directory, Status(phase=Phase.STOPPING))
        return 0
    except LaminaError as error:
        status.write(directory, Status(phase=Phase.FAILED, message=str(error)))
        return error.exit_code
    except Exception as error:
        log.exception("the lab broke")
        status.write(directory, Status(phase=Phase.FAILED, message=f"the lab broke: {error!r}"))
        return 1
    return 0


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    directory = LabDirectory(Path(sys.argv[1]))
    start_guard(directory)
    with status.running(directory, patience_s=2.0) as ours:
        if not ours:
            sys.exit(f"another supervisor runs the lab {directory.name}")
        code = asyncio.run(run(directory))
    sys.exit(code)


if __name__ == "__main__":
    main()
