"""Annotations, labels and metrics under the names that tools of other GPU sharing systems expect."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import structs
from prometheus_client.core import GaugeMetricFamily

from lamina.configuration import Config
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.ledger import NOTHING
from lamina.core.quantities import parse_quantity
from lamina.core.sizes import usable
from lamina.dialects import dialect_named
from lamina.dialects.metadata import BoundPod, Metadata
from lamina.dialects.metrics import MetricTable
from lamina.dialects.registry import cluster_metrics
from lamina.dialects.samples import GrantedGpu, GrantedShare, QuotaUsage
from lamina.errors import BadInput, Outside
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.quotas import ResourceQuotas, usage
from lamina.ports.kube import PODS, BindingMetadata, Kube
from lamina.ports.kube.merge_patch import includes

MODE = "lamina.dev/mode"


def share_annotations(
    pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None
) -> Mapping[str, str]:
    """Of the dialect's annotations, those that say which shares the pod may use now, after a resize."""
    dialect = dialect_named(grant.dialect)
    if dialect is None:
        return {}
    present = structs.replace(grant, containers=tuple(map(usable, grant.containers)))
    annotations = dialect.pod_metadata(BoundPod(pod["spec"], present, now, inventory)).annotations
    return {key: annotations[key] for key in dialect.share_annotations if key in annotations}


def binding_metadata(
    pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None
) -> BindingMetadata:
    """What the pod's Binding carries. `now` is Unix time, `inventory` the node's."""
    dialect = dialect_named(grant.dialect)
    metadata = dialect.pod_metadata(BoundPod(pod["spec"], grant, now, inventory)) if dialect else Metadata()
    modes = "; ".join(f"{container.name}: {container.because}" for container in grant.containers if container.because)
    annotations = {**metadata.annotations, MODE: modes} if modes else metadata.annotations
    return BindingMetadata(annotations, metadata.labels)


S = TypeVar("S")


def families(ledger: Ledger, quotas: ResourceQuotas, config: Config) -> Iterator[GaugeMetricFamily]:
    """The families of the dialects that the configuration wants, from the ledger as it is now."""
    every = cluster_metrics(config)
    if not every:
        return
    yield from _render((table for metrics in every for table in metrics.gpus), tuple(_granted_gpus(ledger)))
    yield from _render((table for metrics in every for table in metrics.shares), tuple(_granted_shares(ledger)))
    used = tuple(_used_quotas(quotas, ledger, config))
    yield from _render((table for metrics in every for table in metrics.quotas), used)


def _render(tables: Iterable[MetricTable[S]], samples: tuple[S, ...]) -> Iterator[GaugeMetricFamily]:
    """Values with the same labels are summed, such as those of a pod's containers where no label names a container."""
    for table in tables:
        rows = [(table.key(sample), sample) for sample in samples]
        for family in table.families:
            sums: dict[tuple[str, ...], float] = {}
            for key, sample in rows:
                for own, value in family.read(sample):
                    labels = (*key, *own)
                    sums[labels] = sums.get(labels, 0) + (value or 0)
            metric = GaugeMetricFamily(family.name, family.help, labels=(*table.labels, *family.labels))
            for labels, total in sums.items():
                metric.add_metric(labels, total)
            yield metric


def _granted_gpus(ledger: Ledger) -> Iterator[GrantedGpu]:
    for node in sorted(ledger.nodes()):
        inventory, taken = ledger.inventory(node), ledger.totals.taken(node)
        for gpu in inventory.gpus if inventory else ():
            yield GrantedGpu(node, gpu, taken.get(gpu.uuid, NOTHING))


def _granted_shares(ledger: Ledger) -> Iterator[GrantedShare]:
    for record in ledger.records():
        grant = record.grant
        for number, container in enumerate(grant.containers):
            for share in container.shares:
                yield GrantedShare(record.namespace, grant.pod, grant.node, number, share)


def _used_quotas(quotas: ResourceQuotas, ledger: Ledger, config: Config) -> Iterator[QuotaUsage]:
    """A quota whose limit cannot be understood is left out. Of equal limits in one namespace the last one counts."""
    rows: dict[tuple[str, str, str], QuotaUsage] = {}
    for namespace, quota in quotas.objects():
        for key, (used, hard) in usage(quota, ledger.totals.taken_in_namespace(namespace), config).items():
            try:
                limit = float(parse_quantity(hard, where=key).value)
            except BadInput:
                continue
            resource = key.removeprefix("limits.")
            rows[namespace, resource, hard] = QuotaUsage(namespace, resource, hard, limit, used)
    yield from rows.values()


log = logging.getLogger(__name__)

EVERY = 100
"""One pod is read for this many binds."""


class BoundLabels:
    """Patches bound pods to which the API server did not copy the labels of their Binding.

    Kubernetes copies them from version 1.35 on, unless a feature gate is off. The answer to a Binding does not tell, so
    the pod is read after the first bind, and again now and then: replicas of the API server may differ while it is
    updated.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._binds = 0
        self._copied = False

    async def complete(self, uid: str, record: GrantRecord, labels: Mapping[str, str]) -> None:
        """The pod was bound with a Binding that carried these labels. Failures are logged: labels are for people."""
        name, namespace = record.grant.pod, record.namespace
        unsure, self._binds = self._binds % EVERY == 0, self._binds + 1
        try:
            if unsure:
                pod = await self._kube.get(PODS, name, namespace=namespace)
                self._copied = includes(pod["metadata"].get("labels"), dict(labels))
            if not self._copied:
                change = {"metadata": {"uid": uid, "labels": dict(labels)}}
                await self._kube.patch(PODS, name, change, namespace=namespace)
        except Outside as error:
            log.warning("Pod %s/%s is bound but could not be labeled: %s", namespace, name, error)
