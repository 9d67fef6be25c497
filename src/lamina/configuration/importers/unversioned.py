"""A document without apiVersion: keys of other systems, next to which Lamina's own may stand.

hami:                      # HAMi's device configuration, see `hami.Hami`
  deviceSplitCount: 10
nodeconfig:                # HAMi's settings of single nodes
  - {name: node-1, devicememoryscaling: 3.0}
volcano:                   # Volcano's device configuration, see `volcano.Volcano`
  gpuMemoryFactor: 1
devicePlugin: {...}        # values of 4paradigm's chart, see `chart_4paradigm`
sharing: {...}             # any group of Lamina's own form
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from lamina.configuration import strict
from lamina.configuration.checks import check_names, check_nodes
from lamina.configuration.form import form
from lamina.configuration.importers import chart_4paradigm, hami, volcano
from lamina.configuration.importers.hami import Hami, NodeConfig
from lamina.configuration.importers.volcano import Volcano
from lamina.configuration.yaml_documents import shown
from lamina.core.component_names import API_VERSION
from lamina.core.config import KIND, Config
from lamina.core.config_fields import Admission, Nodes, Placement, Sharing
from lamina.core.device_fields import Mig
from lamina.core.field_types import Name, NodePolicy, ResourceName
from lamina.dialects.volcano.dialect import SCHEDULE_POLICY
from lamina.errors import BadInput

_HEADER = {"apiVersion": API_VERSION, "kind": KIND}


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """The keys of other systems, without the values of the chart."""

    hami: Hami = Hami()
    volcano: Volcano = Volcano()
    nodeconfig: tuple[NodeConfig, ...] = ()
    """Settings of single nodes, see below."""


class DocumentWithChart(Document, frozen=True, kw_only=True, rename="camel"):
    """The keys of other systems as they may be written; only used to check keys, types and ranges."""

    device_plugin: chart_4paradigm.DevicePlugin | None = None
    scheduler: chart_4paradigm.SchedulerSection | None = None
    resource_name: ResourceName | UnsetType = UNSET
    resource_mem: ResourceName | UnsetType = UNSET
    resource_mem_percentage: ResourceName | UnsetType = UNSET
    resource_cores: ResourceName | UnsetType = UNSET
    resource_priority: ResourceName | UnsetType = UNSET
    scheduler_name: Name | UnsetType = UNSET
    schedule_policy: NodePolicy | UnsetType = msgspec.field(default=UNSET, name=SCHEDULE_POLICY)


def read(document: Mapping[str, Any], where: str) -> Config:
    """The configuration that a document stands for. Raises BadInput; nothing is applied in part."""
    kind = form().configuration
    strict.refuse_unknown_keys(document, (DocumentWithChart, kind), where)
    theirs = strict.known(strict.without_empty_keys(document, DocumentWithChart), DocumentWithChart)
    strict.decode(theirs, DocumentWithChart, where)
    ours = strict.known(strict.without_empty_keys(document, kind), kind)
    strict.decode(_HEADER | ours, kind, where)
    in_hami_keys, selector = chart_4paradigm.in_hami_keys(theirs, where)
    written = strict.decode(in_hami_keys, Document, where)
    _check(written, where)
    imported = msgspec.json.decode(msgspec.json.encode(_configuration(written, selector)))
    return strict.decode(_merged(imported, ours, where), kind, where)


def _merged(imported: Mapping[str, Any], ours: Mapping[str, Any], where: str, path: str = "") -> dict[str, Any]:
    """What is written in other systems' keys and in ours. Raises BadInput if both set the same, to different values."""
    merged = dict(imported)
    for key, value in ours.items():
        here, other = f"{path}{key}", imported.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            merged[key] = _merged(other, value, where, f"{here}.")
        elif key in imported and other != value:
            raise BadInput(
                f"{where}: {here} is {shown(value)}, and {shown(other)} by another system's key; keep one of them"
            )
        else:
            merged[key] = value
    return merged


def _check(written: Document, where: str) -> None:
    hami.check(written.hami, written.nodeconfig, where)
    volcano.check(written.volcano, where)
    names = {
        f"{section}.{key}": value
        for section, keys in (("hami", written.hami), ("volcano", written.volcano))
        for key, value in msgspec.to_builtins(keys).items()
        if key.startswith("resource")
    }
    check_names(names, where)
    check_nodes([node.name for node in written.nodeconfig], "nodeconfig", where)


def _configuration(written: Document, selector: Mapping[str, str]) -> Config:
    keys, types = written.hami, form()
    sections: dict[str, Any] = {"hami": hami.dialect(keys), "volcano": volcano.dialect(written.volcano)}
    return types.configuration(
        api_version=API_VERSION,
        kind=KIND,
        nodes=Nodes(selector=dict(selector), overrides=tuple(hami.node_override(node) for node in written.nodeconfig)),
        sharing=Sharing(
            slots=keys.device_split_count,
            memory_scaling=keys.device_memory_scaling,
            compute_scaling=keys.device_core_scaling,
            unreported_memory_mib=keys.pre_configured_device_memory,
            compute_policy=hami.compute_policy(keys),
            log_level=hami.log_level(keys.lib_cuda_log_level),
        ),
        dialects=types.dialects(**sections),
        placement=Placement(node_policy=keys.node_scheduler_policy, gpu_policy=keys.gpu_scheduler_policy),
        schedulers=types.schedulers(assigned=keys.scheduler_name),
        admission=Admission(hide_gpus=keys.overwrite_env, runtime_class_name=keys.runtime_class_name),
        mig=Mig(
            strategy=keys.mig_strategy,
            rules=(*hami.layout_rules(keys), *volcano.layout_rules(written.volcano), *hami.profile_rules(keys)),
        ),
    )
