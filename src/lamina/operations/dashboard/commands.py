"""The commands with which people act on what a page shows, as text for a POSIX shell.

A name comes from a tenant or another program, so each argument is quoted.
"""

import shlex
from collections.abc import Iterator

from msgspec import Struct

from lamina.operations.dashboard.document import GpuCard, NodeCard, PodCard
from lamina.operations.dashboard.pod_cards import DELETED, PENDING, RUNNING

_KINDS_RESIZED = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")


class ShellCommand(Struct, frozen=True):
    """A command and what it is for."""

    text: str
    purpose: str


def commands_for_pod(card: PodCard) -> tuple[ShellCommand, ...]:
    """For a pod, or a workload whose pods are refused."""
    return tuple(_for_pod(card))


def _for_pod(card: PodCard) -> Iterator[ShellCommand]:
    at = "-n", card.namespace
    if card.state == DELETED:
        yield _command("Find the processes that still run", "lamina", "doctor")
        return
    yield _command("Explain where it is or why it waits", "lamina", "why", *at, card.name)
    if "/" in card.name:
        yield _command("See the workload and its events", "kubectl", "describe", *at, card.name)
        return
    yield _command("See the pod and its events", "kubectl", "describe", "pod", *at, card.name)
    if card.state == PENDING and not card.node:
        yield _command("See what GPUs have free", "lamina", "gpus", "--sort=free")
        return
    yield _command("Read its output", "kubectl", "logs", *at, "--all-containers", "--tail=100", card.name)
    if card.state == RUNNING and any(share.mode == "quota" for share in card.shares):
        kind, _, name = card.workload.partition("/")
        target = f"{kind.lower()}/{name}" if kind in _KINDS_RESIZED else card.name
        share = next(share for share in card.shares if share.mode == "quota")
        resized = [f"--container={share.container}", f"--memory={share.memory_mib}"]
        resized += [f"--cores={share.cores}"] if share.cores else []
        purpose = "Give it more or less of its GPUs, without a restart; change the amounts"
        yield _command(purpose, "lamina", "resize", *at, *resized, target)


def commands_for_gpu(node: NodeCard, gpu: GpuCard) -> tuple[ShellCommand, ...]:
    """For a GPU of a node."""
    cordon = "uncordon" if gpu.cordoned else "cordon"
    purpose = "Place work on it again" if gpu.cordoned else "Stop placing new work on it"
    return (
        _command("List the GPUs of its node", "lamina", "gpus", f"--node={node.name}"),
        _command(purpose, "lamina", cordon, "gpu", node.name, str(gpu.index)),
        _command("See the node and its events", "kubectl", "describe", "node", node.name),
    )


def _command(purpose: str, *words: str) -> ShellCommand:
    return ShellCommand(shlex.join(words), purpose)
