"""The dialects that Lamina supports, and what follows from all of their names together.

To add a dialect, add it to `DIALECTS`. Where two dialects have the same name for a resource, the first one has it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamina.core.config import Config
from lamina.dialects import choices
from lamina.dialects.cce import CceDialect
from lamina.dialects.choices import ChoiceAnnotations
from lamina.dialects.hami import HamiDialect
from lamina.dialects.kai import KaiDialect
from lamina.dialects.metadata import Metadata, NodeFacts
from lamina.dialects.metrics import ClusterMetrics, NodeMetrics
from lamina.dialects.nvidia import NvidiaDialect
from lamina.dialects.opentelemetry import OpenTelemetryDialect
from lamina.dialects.protocol import Dialect, Listed, ResourceNames
from lamina.dialects.volcano import VolcanoDialect

DIALECTS: tuple[Dialect, ...] = (
    HamiDialect(),
    VolcanoDialect(),
    CceDialect(),
    KaiDialect(),
    NvidiaDialect(),
    OpenTelemetryDialect(),
)

_MAX_CACHED = 8


@dataclass(frozen=True, kw_only=True)
class NameIndex:
    """All names of all dialects under one configuration."""

    dialects: tuple[Dialect, ...]
    config: Config
    names: Mapping[str, ResourceNames]
    """The resource names by dialect."""
    owners: Mapping[str, Dialect]
    """Which dialect has a resource."""
    aliases: Mapping[str, str]
    """Other names of these resources, and those in force."""
    tickets: frozenset[str]
    """The resources of all dialects by which kubelet allocates tickets."""
    guarded_prefixes: tuple[str, ...]
    choice_annotations: ChoiceAnnotations


_cached: dict[int, NameIndex] = {}
"""By identity of the configuration, which the index keeps alive. A configuration never changes."""


def name_index(config: Config) -> NameIndex:
    """The index of this configuration. It is built once and kept, since every pod needs it."""
    index = _cached.get(id(config))
    if index is None or index.dialects is not DIALECTS:
        if len(_cached) >= _MAX_CACHED:
            _cached.clear()
        index = _cached[id(config)] = _build_index(config)
    return index


def _build_index(config: Config) -> NameIndex:
    names = {dialect.name: dialect.resource_names(config) for dialect in DIALECTS}
    owners: dict[str, Dialect] = {}
    for dialect in DIALECTS:
        for name in names[dialect.name].all:
            owners.setdefault(name, dialect)
    return NameIndex(
        dialects=DIALECTS,
        config=config,
        names=names,
        owners=owners,
        aliases={
            other: name
            for dialect in DIALECTS
            for other, name in dialect.aliases(names[dialect.name]).items()
            if other not in owners
        },
        tickets=frozenset(each.ticket for each in names.values() if each.ticket),
        guarded_prefixes=tuple({prefix: None for one in DIALECTS for prefix in one.guarded_prefixes(config)}),
        choice_annotations=choices.merge(dialect.choice_annotations for dialect in DIALECTS),
    )


def dialect_named(name: str) -> Dialect | None:
    """The dialect of this name, as grants and requests record it; None for one that is not supported."""
    return next((dialect for dialect in DIALECTS if dialect.name == name), None)


def resource_names(config: Config) -> tuple[ResourceNames, ...]:
    """The names of each dialect whose pods need grants."""
    return tuple(names for names in name_index(config).names.values() if names.ticket)


def quota_names(config: Config) -> ResourceNames:
    """The names by which ResourceQuotas limit memory and cores."""
    index = name_index(config)
    return next((index.names[one.name] for one in index.dialects if one.limits_by_quota), ResourceNames())


def resource_domains(config: Config) -> tuple[str, ...]:
    """Prefixes such as `nvidia.com/` under which a resource can concern Lamina, misspelled ones included."""
    index = name_index(config)
    return tuple(sorted({f"{name.partition('/')[0]}/" for name in (*index.owners, *index.guarded_prefixes)}))


def requesting_annotations(config: Config) -> tuple[str, ...]:
    """What the keys of annotations start with by which pods request GPUs."""
    return tuple({prefix: None for one in name_index(config).dialects for prefix in one.annotation_prefixes})


def pod_annotations() -> frozenset[str]:
    """The keys of all annotations that dialects can write on bound pods."""
    return frozenset(key for dialect in DIALECTS for key in dialect.pod_annotations)


def node_annotations() -> frozenset[str]:
    """The keys of all annotations that dialects can write on nodes."""
    return frozenset(key for dialect in DIALECTS for key in dialect.node_annotations)


def observed_annotations() -> frozenset[str]:
    """The keys of all annotations of nodes that dialects write or read."""
    return node_annotations() | {key for dialect in DIALECTS for key in dialect.observed_annotations}


def label_prefixes() -> tuple[str, ...]:
    """What the labels that dialects can write on nodes start with."""
    return tuple(sorted({prefix for dialect in DIALECTS for prefix in dialect.label_prefixes}))


def owns_label(key: str) -> bool:
    """Whether a label of a node is one that a dialect can write."""
    return any(dialect.owns_label(key) for dialect in DIALECTS)


def labels_of_others(annotations: Mapping[str, str]) -> frozenset[str]:
    """The labels that other programs write on a node with these annotations."""
    return frozenset(key for dialect in DIALECTS for key in dialect.labels_of_others(annotations))


def node_metadata(node: NodeFacts, config: Config) -> Metadata:
    """What the dialects that the configuration chooses write on a node."""
    chosen, written = config.compatibility, [(dialect, dialect.node_metadata(node)) for dialect in DIALECTS]
    return Metadata(
        labels={key: value for _, one in written for key, value in one.labels.items() if chosen.labels},
        timestamps=frozenset(key for _, one in written for key in one.timestamps if chosen.labels),
        annotations={
            key: value
            for dialect, one in written
            for key, value in one.annotations.items()
            if _is_chosen(dialect.listed_annotations, chosen.annotations)
        },
    )


def names_with_sums(choosing: Config, config: Config) -> tuple[ResourceNames, ...]:
    """The names under `config` of the dialects that `choosing` lets report sums of memory and cores."""
    index = name_index(config)
    chosen = choosing.compatibility.resources
    return tuple(index.names[one.name] for one in index.dialects if _is_chosen(one.listed_resources, chosen))


def node_metrics(config: Config) -> tuple[NodeMetrics, ...]:
    """What agents serve for dialects."""
    return tuple(dialect.node_metrics for dialect in _with_metrics(config))


def cluster_metrics(config: Config) -> tuple[ClusterMetrics, ...]:
    """What the controller serves for dialects."""
    return tuple(dialect.cluster_metrics for dialect in _with_metrics(config))


def _with_metrics(config: Config) -> list[Dialect]:
    chosen = config.compatibility.metrics
    return [dialect for dialect in DIALECTS if _is_chosen(dialect.listed_metrics, chosen)]


def _is_chosen(listed: Listed | None, chosen: Sequence[str]) -> bool:
    return listed is not None and listed.name in chosen
