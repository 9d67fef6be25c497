"""The page of metrics, from the tables of families that agent and controller serve."""

import logging
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from docs.generate.markdown import code, page, table
from lamina.agent.chargeback.book import EMPTY
from lamina.agent.metrics import families
from lamina.agent.metrics.families import account_families, history_families, idle_family, price_family
from lamina.configuration import DEFAULT
from lamina.controller.compatibility import families as compat_families
from lamina.controller.metrics import Metrics
from lamina.controller.replica_metrics import ReplicaMetrics, ReplicaState
from lamina.dialects.registry import DIALECTS
from lamina.ledger.ledger import Ledger
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.set_aside import SetAside

_SOURCE = "the metrics of agent and controller"
_HEAD = ("name", "labels", "meaning")
_INTRODUCTION = """
The agent of each node serves `/metrics` at `--metrics-bind` (port 9394, as HAMi's monitor does), the controller at its
extender's address and at its own `--metrics-bind` (port 9395 in an installation). The configuration key
`compatibility.metrics` chooses whose names are served in addition to Lamina's: `hami`, `volcano`, `dcgm`, `cce`, and
`opentelemetry`, which is off by default. Names, labels and units of others are theirs. See
[Monitor](../how-to/monitor.md) for queries.
"""
_CONTAINERS = """
`gpu` is the UUID of the MIG device if the container has one, except in HAMi's series, which name it in addition to its
GPU. The enforcers are `facade`, `driver` (in addition to the facade), `mig`, `mps` (of each process), `whole` (the GPU
is the container's own) and `none` (shared by time alone). The kinds of memory are data, managed, pool, array, context,
module, and `foreign`, which no process of the container owns. CCE's documents name no labels for its series, so these
are ours.
"""
_CLAIMS = """
All containers that name a request share its limits and its account, so the series name the claim and not pods.
"""
_ACCOUNTS = """
`kind` and `workload` name what people made, such as a Deployment. `part` is `memory` or `compute`, and `figure` is
`requested`, `observed` (the part of it for which use is known), `used`, and of compute `borrowed` (used beyond the
request) and `lent` (requested and left to others). What is never known has no series. For each GPU, the sum of
what is requested and `idle` is `capacity`. [Cost](../how-to/cost.md) says how to use them.

[Advice](../how-to/right-size.md) is computed from `lamina_history_memory_peak_bytes` and the series after it.
"""
_CONTROLLER = """
Only the replica that leads serves what is granted and who waits, so that a sum over all replicas counts it once.
`cause` is the nearest reason why a pod fits nowhere: `memory`, `cores`, `slots`, `time`, `held`, `not_idle`, `place`,
`unhealthy`, `cordoned` and others; `refused` for a pod that no node may take, such as one over its quota; `pod_group`
for a member of a group that does not fit together. `lamina why POD` has the sentence. The certificates are `admission`
and `extender`.

`container_index` counts the containers of a pod that have GPUs, from 0. HAMi's old names, which it serves only with
`--legacy-metrics`, and `hami_container_last_kernel_elapsed_seconds` are not served. HAMi's scheduler serves
`hami_node_gpu_mig_instance_info`; here the agent does, because it alone knows the UUIDs.
"""
_SET_ASIDE = """
`kind` is a resource of Kubernetes, such as `pods`; something on the node, such as `GPU`, `MPS daemon`, `container` or
`ContainerFiles` (the files of one container); `answer of NVML`; or `loop`, which is started again. The log names each
object once, and one that changes often only now and then. The alert
[LaminaObjectsSetAside](../how-to/alerts.md#laminaobjectssetaside) finds defects and tampering.
"""


def pages() -> Iterator[tuple[str, str]]:
    parts = [_INTRODUCTION]
    every = (families.OWN, *(dialect.node_metrics for dialect in DIALECTS))
    for title, tables, note in (
        ("GPUs, from the agent", [one for metrics in every for one in metrics.gpus], ""),
        ("MIG devices, from the agent", [one for metrics in every for one in metrics.mig_devices], ""),
        ("Containers, from the agent", [one for metrics in every for one in metrics.shares], _CONTAINERS),
        ("Requests of ResourceClaims, from the agent", [families.CLAIMS], _CLAIMS),
    ):
        rows = [
            (
                code(family.name + ("_total" if family.counter else "")),
                _labels((*kinds.labels, *family.labels)),
                family.help,
            )
            for kinds in tables
            for family in kinds.families
        ]
        if title.startswith("GPUs"):
            look = families.look_family("", None)
            rows.append((code(look.name), _labels(look._labelnames), look.documentation))
        parts += [f"## {title}", table(_HEAD, rows), note]
    rows = [(code(_name(each)), _labels(each._labelnames), each.documentation) for each in _accounts()]
    parts += ["## Workloads over time, from the agent", table(_HEAD, rows), _ACCOUNTS]
    served = sorted(_served(), key=lambda pair: (not pair[0].name.startswith("lamina"), pair[0].name))
    rows = [(code(_name(metric)), _labels(labels), metric.documentation) for metric, labels in served]
    parts += ["## Grants, pods and replicas, from the controller", table(_HEAD, rows), _CONTROLLER]
    aside = SetAside(logging.getLogger()).family()
    row = (code(_name(aside)), _labels(aside._labelnames), aside.documentation)
    parts += ["## Objects that were set aside, from both", table(_HEAD, [row]), _SET_ASIDE]
    yield "metrics.md", page("Metrics", _SOURCE, *parts)


def series() -> dict[str, tuple[str, ...]]:
    """The labels of each series that agent or controller serves, by its name."""
    own: list[tuple[Metric, tuple[str, ...]]] = [
        (families.look_family("", None), ("node",)),
        (SetAside(logging.getLogger()).family(), ("kind",)),
        *((each, tuple(each._labelnames)) for each in _accounts()),
    ]
    found = {_name(metric): labels for metric, labels in (*own, *_served()) if metric.type != "histogram"}
    for metric, labels in _served():
        if metric.type == "histogram":
            found |= {f"{metric.name}_bucket": (*labels, "le")}
            found |= {f"{metric.name}_{part}": labels for part in ("sum", "count")}
    for metrics in (families.OWN, *(dialect.node_metrics for dialect in DIALECTS)):
        for table_ in (*metrics.gpus, *metrics.mig_devices, *metrics.shares):
            for family in table_.families:
                found[family.name + ("_total" if family.counter else "")] = (*table_.labels, *family.labels)
    for family in families.CLAIMS.families:
        found[family.name + ("_total" if family.counter else "")] = (*families.CLAIMS.labels, *family.labels)
    return found


def _accounts() -> list[Metric]:
    return [
        *account_families("", EMPTY),
        price_family("", (), DEFAULT.pricing),
        *history_families("", ()),
        idle_family("", (), (), 0.0),
    ]


def _labels(names: tuple[str, ...]) -> str:
    return ", ".join(code(name) for name in names)


def _name(metric: Metric) -> str:
    return metric.name + ("_total" if metric.type == "counter" else "")


def _served() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """What a controller without a cluster serves; its own instruments know their labels only before they are used."""
    metrics = Metrics(
        Ledger(), SetAside(logging.getLogger(__name__)), lambda: compat_families(Ledger(), ResourceQuotas(), DEFAULT)
    )
    metrics.registry.register(ReplicaMetrics(ReplicaState))
    own = {
        instrument._name: tuple(instrument._labelnames)
        for instrument in vars(metrics).values()
        if hasattr(instrument, "_labelnames")
    }
    for metric in metrics.registry.collect():
        yield metric, own.get(metric.name) or tuple(getattr(metric, "_labelnames", ()))
