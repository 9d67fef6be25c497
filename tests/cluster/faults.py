"""Random failures in a cluster: each with how it happens and how it is repaired."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.node import RealNode
from tests.cluster.components.processes import Processes


def _nothing() -> None:
    pass


class Part(NamedTuple):
    """`kind` is for counting. What breaks on a `node` is whole again after a reboot. The part is away for `away_s` at
    most."""

    kind: str
    end: Callable[[], None]
    back: Callable[[], None] = _nothing
    node: str = ""
    away_s: float = 4.0
    weight: int = 4


def daemons(cluster: RealCluster, lamina: Processes) -> dict[str, Daemon]:
    """The parts that are programs, by name. Those that end are started again, as on a real cluster."""
    found = {"API server": cluster.control.apiserver, "kube-scheduler": cluster.control.scheduler}
    found |= {"scheduler": lamina.scheduler, "admission": lamina.admission}
    found |= {replica.name: replica for replica in lamina.controllers}
    for node in cluster.nodes:
        own = {"agent": lamina.agents[node.name], "kubelet": node.kubelet, "containerd": node.containerd}
        found |= {f"{kind} of {node.name}": daemon for kind, daemon in own.items()}
    return found


def parts(cluster: RealCluster, lamina: Processes, random: Random) -> dict[str, Part]:
    """All of them by name, as they are now."""
    api, own, theirs = cluster.control.apiserver, lamina.scheduler, cluster.control.scheduler
    found = {
        "API server": Part("API server", api.kill, api.start, away_s=12),
        "scheduler": Part("scheduler", own.kill, own.start),
        "kube-scheduler": Part("kube-scheduler", theirs.kill, theirs.start, weight=2),
    }
    for replica in lamina.controllers:
        found[replica.name] = _killed_or_stopped(replica, random)
    for node in cluster.nodes:
        found |= {f"{part.kind} of {node.name}": part for part in _of_node(node, lamina, random)}
    return found


def _killed_or_stopped(replica: Daemon, random: Random) -> Part:
    """One that stands still may go on when another one has led for a while, and does not know it."""
    if random.random() < 0.6:
        return Part("controller", replica.kill, replica.start)
    return Part("controller stopped", replica.pause, replica.go_on, away_s=20)


def _of_node(node: RealNode, lamina: Processes, random: Random) -> list[Part]:
    agent, name = lamina.agents[node.name], node.name
    number = random.choice((signal.SIGTERM, signal.SIGKILL))

    def reboot() -> None:
        node.reboot()
        lamina.reboot(node)

    return [
        Part("agent", agent.kill, agent.start, name),
        Part("kubelet", lambda: node.kubelet.stop(number), node.kubelet.start, name),
        Part("containerd", node.containerd.kill, node.start_containerd, name),
        Part("container", lambda: _kill_container(node, random), node=name, weight=6),
        Part("MPS", lambda: _kill_daemon(node, random), node=name, weight=2),
        Part("reboot", reboot, node=name, weight=1),
    ]


def _kill_container(node: RealNode, random: Random) -> None:
    with suppress(Unavailable):  # containerd is away, or the container has just ended
        running = [line.split()[0] for line in node.ctr("tasks", "ls").splitlines() if "RUNNING" in line]
        if running:
            node.ctr("tasks", "kill", "--signal", "SIGKILL", random.choice(sorted(running)))


def _kill_daemon(node: RealNode, random: Random) -> None:
    """A daemon of MPS on the node, or its server."""
    found, space = [], Path(f"/proc/{node.sandbox.pid}/ns/pid").readlink()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            of_daemon = b"\0CUDA_MPS_LOG_DIRECTORY=" in (path / "environ").read_bytes()
            if of_daemon and (path / "ns/pid").readlink() == space:
                found.append(int(path.name))
    if found:
        with suppress(ProcessLookupError):
            os.kill(random.choice(sorted(found)), signal.SIGKILL)
