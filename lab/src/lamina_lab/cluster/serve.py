"""The supervisor of a lab: `python -m lamina_lab.cluster.serve DIRECTORY`.

It hosts the API server, the controllers and the scheduler, keeps the lab's other processes running, and writes its
progress to the lab's status file. It ends on SIGTERM. A guard, which it starts first, cleans up however it ends.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from lamina import configuration
from lamina.errors import LaminaError
from lamina.install.chart import namespace_object
from lamina.operations.installed import installation_record
from lamina.ports.clock import SystemClock
from lamina.ports.kube import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, NAMESPACES, AlreadyExists, Kube
from lamina_lab import programs, simgpu
from lamina_lab.api import server
from lamina_lab.api.http.kubelets import UnixKubelets
from lamina_lab.api.in_process import InProcess
from lamina_lab.cluster import commands, operator_objects
from lamina_lab.cluster.children import Child, keep_running
from lamina_lab.cluster.plan import LabPlan
from lamina_lab.cluster.readiness import readiness
from lamina_lab.cluster.scheduling import schedule
from lamina_lab.controllers.run import run as run_controllers
from lamina_lab.host import status
from lamina_lab.host.directory import LabDirectory
from lamina_lab.host.status import Phase, Status

log = logging.getLogger(__name__)

_POLL_S = 0.05


def start_guard(directory: LabDirectory) -> int:
    """Start the guard. It cleans up when the returned write end of its pipe closes, at the latest when we end."""
    read_end, write_end = os.pipe()
    subprocess.Popen(
        [sys.executable, "-m", "lamina_lab.cluster.guard", str(directory.root), str(read_end)],
        pass_fds=(read_end,),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_end)
    return write_end


async def supervise(directory: LabDirectory, plan: LabPlan) -> None:
    """Run the lab until this task is canceled."""
    sockets = {node.name: directory.node(index).kubelet_api for index, node in enumerate(plan.nodes)}
    kubelets = UnixKubelets(sockets.get)
    pages = {node.name: directory.node(index).metrics_url for index, node in enumerate(plan.nodes)}
    api = await server.serve(kubelets, port=plan.port, agents=pages.get)
    try:
        api.write_kubeconfig(directory.kubeconfig)
        account = Status(phase=Phase.STARTING, pid=os.getpid(), url=api.url, message="the controller")
        status.write(directory, account)
        _prepare_disks(directory, plan)
        kube = InProcess(api.api, "system:lab-supervisor", plan.namespace)
        await _publish_installation(kube, directory)
        await operator_objects.publish(kube)
        async with asyncio.TaskGroup() as group:
            for child in _children(directory, plan):
                group.create_task(keep_running(child))
            group.create_task(run_controllers(InProcess(api.api, "system:lab-controllers"), SystemClock()))
            group.create_task(schedule(InProcess(api.api, "system:lab-scheduler", plan.namespace), directory))
            group.create_task(_report_progress(kube, directory, plan, account))
    finally:
        await api.close()
        await kubelets.close()


def _prepare_disks(directory: LabDirectory, plan: LabPlan) -> None:
    """Create what is on disk: programs, and each node's folders and simulated machine."""
    programs.install(directory.programs, directory.image_root)
    for index, node in enumerate(plan.nodes):
        disk = directory.node(index)
        for folder in (disk.kubelet, disk.cdi, disk.agent_state):
            folder.mkdir(parents=True)
        simgpu.write(node.machine(plan), disk.machine)


def _children(directory: LabDirectory, plan: LabPlan) -> list[Child]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    children = [commands.admission(directory, plan, port), commands.controller(directory, plan, port)]
    for index, node in enumerate(plan.nodes):
        disk = directory.node(index)
        children.append(commands.kubelet(directory, disk, node))
        children.append(commands.agent(directory, disk, node.name, plan))
        children.append(commands.mps_service(directory, disk, node.name))
    return children


async def _publish_installation(kube: Kube, directory: LabDirectory) -> None:
    """Create what an installation does for components and commands: the namespace, the binding by which commands find
    it, and the ConfigMap that holds the configuration."""
    namespace = kube.lamina_namespace
    with contextlib.suppress(AlreadyExists):
        await kube.create(NAMESPACES, namespace_object(namespace))
    await kube.create(CLUSTER_ROLE_BINDINGS, installation_record(namespace))
    await kube.create(
        CONFIG_MAPS,
        {
            "metadata": {"name": configuration.CONFIG_MAP},
            "data": {configuration.CONFIG_MAP_KEY: directory.config.read_text()},
        },
        namespace=namespace,
    )


async def _report_progress(kube: Kube, directory: LabDirectory, plan: LabPlan, account: Status) -> None:
    config = configuration.load(directory.config.read_text(), str(directory.config))
    while (waiting_for := await readiness(kube, directory, plan, config)) is not None:
        if waiting_for != account.message:
            account = msgspec.structs.replace(account, message=waiting_for)
            status.write(directory, account)
        await asyncio.sleep(_POLL_S)
    status.write(directory, msgspec.structs.replace(account, phase=Phase.READY, message=""))
    log.info("the lab is ready at %s", account.url)


async def run(directory: LabDirectory) -> int:
    """Run the supervisor until it ends; return its exit code."""
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=LabPlan)
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
        log.exception("the lab failed")
        status.write(directory, Status(phase=Phase.FAILED, message=f"internal error: {error!r}"))
        return 1
    return 0


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    directory = LabDirectory(Path(sys.argv[1]))
    start_guard(directory)
    with status.lock(directory, timeout_s=2.0) as acquired:
        if not acquired:
            sys.exit(f"another supervisor already runs lab {directory.name}")
        code = asyncio.run(run(directory))
    sys.exit(code)


if __name__ == "__main__":
    main()
