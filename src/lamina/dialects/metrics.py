"""Metrics as tables: names, meanings, labels, and how values follow from a sample. Agent and controller render them."""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from lamina.dialects.samples import GpuSample, GrantedGpu, GrantedShare, MigSample, QuotaUsage, ShareSample

S = TypeVar("S")
Values = Iterable[tuple[tuple[str, ...], float | None]]
"""Values with the labels that are a family's own. None is left out."""


class MetricFamily(NamedTuple, Generic[S]):
    """One name. `labels` are its own, after those of its table."""

    name: str
    help: str
    read: Callable[[S], Values]
    labels: tuple[str, ...] = ()
    counter: bool = False


class MetricTable(NamedTuple, Generic[S]):
    """Families with the same first labels, whose values are `key` of a sample."""

    labels: tuple[str, ...]
    key: Callable[[S], tuple[str, ...]]
    families: tuple[MetricFamily[S], ...]


class NodeMetrics(NamedTuple):
    """What the agent of a node serves."""

    gpus: tuple[MetricTable[GpuSample], ...] = ()
    mig_devices: tuple[MetricTable[MigSample], ...] = ()
    shares: tuple[MetricTable[ShareSample], ...] = ()


class ClusterMetrics(NamedTuple):
    """What the controller serves. Values of several samples with the same labels are summed."""

    gpus: tuple[MetricTable[GrantedGpu], ...] = ()
    shares: tuple[MetricTable[GrantedShare], ...] = ()
    quotas: tuple[MetricTable[QuotaUsage], ...] = ()


def gauge(name: str, help: str, read: Callable[[S], float | None]) -> MetricFamily[S]:
    """A family with one value and no labels of its own."""
    return MetricFamily(name, help, lambda sample: (((), read(sample)),))


def counter(name: str, help: str, read: Callable[[S], float | None]) -> MetricFamily[S]:
    """As `gauge`, for a value that only grows. The name is without `_total`."""
    return MetricFamily(name, help, lambda sample: (((), read(sample)),), counter=True)
