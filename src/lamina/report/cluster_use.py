"""What GPUs and containers use now, by the metrics of the agents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lamina.core.quantities import MIB

_READ = ("lamina_gpu_", "lamina_mig_", "lamina_container_", "lamina_claim_")
_MAX_AMOUNT = 2.0**63
_Holder = tuple[str, str, str]
"""Namespace, pod and container, or namespace, claim and request."""


class GpuLoad(NamedTuple):
    """What one GPU is and does, as far as the driver reports it."""

    used_mib: int | None = None
    busy_percent: float | None = None
    node: str = ""
    gpu_index: int = 0
    model: str = ""
    memory_mib: int = 0
    reason: str = ""
    """Why it is not healthy; empty while it is."""


class MigDeviceOf(NamedTuple):
    """A MIG device: its GPU, by UUID, and its profile and memory."""

    gpu: str
    profile: str
    memory_mib: int


class ShareFigures(NamedTuple):
    """What one container does with one GPU; None is what its agent does not know."""

    used_mib: int | None = None
    limit_mib: int | None = None
    borrowed_mib: int = 0
    spilled_mib: int | None = None
    peak_mib: int | None = None
    refusals: int = 0
    busy_percent: float | None = None
    cores_percent: int = 0
    """Its share of the GPU's time; 0 where it has none of its own."""


@dataclass
class ClusterUse:
    """`gpus` are keyed by UUID, as `mig_devices` are, `shares` and `claims` by who has them and then by UUID."""

    gpus: dict[str, GpuLoad] = field(default_factory=dict)
    mig_devices: dict[str, MigDeviceOf] = field(default_factory=dict)
    shares: dict[_Holder, dict[str, ShareFigures]] = field(default_factory=dict)
    claims: dict[_Holder, dict[str, ShareFigures]] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """The nodes whose agents did not answer, each with the reason."""

    def share(self, holder: _Holder, gpu: str) -> ShareFigures | None:
        """What a container does with a GPU. One that has a MIG device is known by the UUID of that device."""
        return _of_gpu(self.shares.get(holder, {}), gpu)

    def claim(self, holder: _Holder, gpu: str) -> ShareFigures | None:
        """The same of a request of a claim."""
        return _of_gpu(self.claims.get(holder, {}), gpu)

    def gpu_of(self, device: str) -> str:
        """The UUID of the GPU that a MIG device is part of; that of a GPU is its own."""
        part = self.mig_devices.get(device)
        return device if part is None else part.gpu

    def join(self, other: "ClusterUse") -> None:
        """Take in what another reading says of other nodes."""
        self.gpus |= other.gpus
        self.mig_devices |= other.mig_devices
        self.shares |= other.shares
        self.claims |= other.claims
        self.silent |= other.silent

    def add(self, node: str | None, page: str) -> None:
        """Take in the page of a node's agent, which speaks for its own node only, or with None one that speaks for
        all, such as Prometheus's. Raises ValueError and KeyError."""
        for name, labels, value in samples(page, _READ):
            if node is not None and labels.get("node") != node:
                continue
            if name in _OF_GPU:
                self._add_gpu(labels, {_OF_GPU[name]: _amount(_OF_GPU[name], value)})
            elif name == _HEALTHY:
                self._add_gpu(labels, {"reason": labels["reason"]})
            elif name == _MIG_DEVICE:
                memory_mib = _amount("memory_mib", value)
                self.mig_devices[labels["mig"]] = MigDeviceOf(labels["gpu"], labels["profile"], memory_mib)
            elif name.startswith(_OF_CONTAINER):
                holder = labels["namespace"], labels["pod"], labels["container"]
                _add_share(self.shares, holder, labels["gpu"], name.removeprefix(_OF_CONTAINER), value)
            elif name.startswith(_OF_CLAIM):
                holder = labels["namespace"], labels["claim"], labels["request"]
                _add_share(self.claims, holder, labels["gpu"], name.removeprefix(_OF_CLAIM), value)

    def _add_gpu(self, labels: Mapping[str, str], figures: Mapping[str, Any]) -> None:
        known = self.gpus.get(labels["gpu"])
        if known is None:
            known = GpuLoad(node=labels["node"], gpu_index=int(labels["index"]), model=labels["model"])
        self.gpus[labels["gpu"]] = known._replace(**figures)


_HEALTHY, _MIG_DEVICE = "lamina_gpu_healthy", "lamina_mig_memory_bytes"
_OF_CONTAINER, _OF_CLAIM = "lamina_container_", "lamina_claim_"
_OF_GPU = {
    "lamina_gpu_memory_bytes": "memory_mib",
    "lamina_gpu_memory_used_bytes": "used_mib",
    "lamina_gpu_utilization_percent": "busy_percent",
}
_OF_SHARE = {
    "memory_used_bytes": "used_mib",
    "memory_limit_bytes": "limit_mib",
    "memory_borrowed_bytes": "borrowed_mib",
    "memory_spilled_bytes": "spilled_mib",
    "memory_peak_bytes": "peak_mib",
    "memory_refusals_total": "refusals",
    "utilization_percent": "busy_percent",
    "cores_percent": "cores_percent",
}


def _of_gpu(known: Mapping[str, ShareFigures], gpu: str) -> ShareFigures | None:
    return known.get(gpu) or (next(iter(known.values())) if len(known) == 1 else None)


def _add_share(
    shares: dict[_Holder, dict[str, ShareFigures]], holder: _Holder, gpu: str, name: str, value: float
) -> None:
    if (key := _OF_SHARE.get(name)) is None:
        return
    figures = shares.setdefault(holder, {})
    share = figures.get(gpu, ShareFigures())
    before = (share.used_mib or 0) if key == "used_mib" else 0  # one sample for each kind of allocation
    figures[gpu] = share._replace(**{key: before + _amount(key, value)})


def samples(page: str, prefixes: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """The samples of families with these prefixes. Others are not parsed, which would take most of the time."""
    own = "".join(f"{line}\n" for line in page.split("\n") if line.startswith(prefixes))
    for family in text_string_to_metric_families(own):
        sample: Sample
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def _amount(key: str, value: float) -> Any:
    """Raises ValueError for what no GPU has: a page may say anything."""
    if not 0 <= value < _MAX_AMOUNT:
        raise ValueError(f"{key} is {value}")
    if key.endswith("_mib"):
        return int(value) // MIB
    return value if key == "busy_percent" else int(value)
