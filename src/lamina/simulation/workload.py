"""Nodes and pods as the simulation knows them, whatever file they came from."""

from msgspec import Struct

from lamina.core.gpus import Gpu
from lamina.core.requests import PodRequest


class SimNode(Struct, frozen=True, kw_only=True):
    """One node. CPU is in thousandths of a core, memory in MiB."""

    name: str
    cpu: int
    memory_mib: int
    gpus: tuple[Gpu, ...] = ()


class SimPod(Struct, frozen=True, kw_only=True):
    """One pod; `request` is None where it requests no GPU. Times are in seconds; a pod that stays has no end."""

    name: str
    cpu: int = 0
    memory_mib: int = 0
    request: PodRequest | None = None
    created: float = 0.0
    deleted: float | None = None
    mig_devices: bool = False
    """Whether it asks for MIG devices by the names of their profiles."""
    node: str = ""
    """Where the pod runs in the dump; empty where it waits."""
