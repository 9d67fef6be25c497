"""From a Configuration as it is written to the Config that the rest of the code uses."""

import msgspec

from lamina.configuration.checks import check_mig_rules, check_modes, check_names, check_native_configs, check_nodes
from lamina.configuration.device_fields import AllowedInstances
from lamina.configuration.dialect_fields import Dialects
from lamina.configuration.fields import Configuration, NodeOverride
from lamina.core.borrowers import BorrowerPolicy
from lamina.core.config import ByClaim, CompatibilitySettings, Config, HealthRules, NativeDeviceSettings, NodeSettings
from lamina.core.field_types import Group
from lamina.core.gpus import Mode
from lamina.core.grantless import GrantlessPolicy
from lamina.core.grants import ComputePolicy
from lamina.core.idle import IdlePolicy
from lamina.core.mig_rules import MigRule
from lamina.core.prices import GpuPrice, Pricing
from lamina.core.sharing import TimeSlice
from lamina.errors import BadInput


def to_config(written: Configuration, where: str) -> Config:
    """The settings that follow from a configuration. Raises BadInput for fields that contradict each other."""
    _check(written, where)
    all_nodes = _all_nodes(written)
    overrides = {node.name: _with_overrides(all_nodes, node) for node in written.nodes.overrides}
    rules = tuple(_rule(rule, f"mig.rules[{number}]", where) for number, rule in enumerate(written.mig.rules))
    check_mig_rules(rules, where)
    return Config(
        enabled=written.enabled,
        node_selector=written.nodes.selector,
        all_nodes=all_nodes,
        single_nodes=overrides,
        dialects={type(section): section for section in _sections(written.dialects).values()},
        other_resources=written.dialects.other_resources,
        node_policy=written.placement.node_policy,
        gpu_policy=written.placement.gpu_policy,
        compute_policy=ComputePolicy(written.sharing.compute_policy),
        memory_enforcer=written.sharing.memory_enforcer,
        low_priority_percent=written.sharing.low_priority_percent,
        high_priority_namespaces=written.sharing.high_priority_namespaces,
        moves_per_hour=written.defragmentation.moves_per_hour,
        idle=IdlePolicy(
            hours=written.idle_shares.hours,
            notice_s=60.0 * written.idle_shares.notice_minutes,
            action=written.idle_shares.action,
            namespaces=written.idle_shares.namespaces,
        ),
        borrowers=BorrowerPolicy(
            after_s=float(written.borrowers.seconds),
            notice_s=float(written.borrowers.notice_seconds),
            namespaces=written.borrowers.namespaces,
        ),
        grantless_pods=GrantlessPolicy(
            after_s=float(written.grantless_pods.seconds), exempt=written.grantless_pods.exempt
        ),
        pricing=_pricing(written),
        schedulers=written.schedulers.served,
        assigned_scheduler=written.schedulers.assigned,
        runtime_class_name=written.admission.runtime_class_name,
        hide_gpus=written.admission.hide_gpus,
        hiding_failure_policy=written.admission.hiding_failure_policy,
        by_claim=ByClaim(written.admission.by_claim),
        mig_rules=rules,
        native_devices=_native_devices(written),
        health=_health(written),
        compatibility=_compatibility(written),
    )


def _check(written: Configuration, where: str) -> None:
    names = {
        f"dialects.{dialect}.resources.{field.encode_name}": getattr(resources, field.name)
        for dialect, section in _sections(written.dialects).items()
        if isinstance(resources := getattr(section, "resources", None), Group)
        for field in msgspec.structs.fields(resources)
    }
    check_names(names, where)
    check_modes(written.sharing.modes, "sharing.modes", where)
    for number, node in enumerate(written.nodes.overrides):
        check_modes(node.modes, f"nodes.overrides[{number}].modes", where)
    check_nodes([node.name for node in written.nodes.overrides], "nodes.overrides", where)
    check_native_configs(written.native_devices.configs, "nativeDevices.configs", where)


def _sections(dialects: Dialects) -> dict[str, Group]:
    """The section of each dialect, by its name."""
    fields = msgspec.structs.fields(dialects)
    return {field.encode_name: value for field in fields if isinstance(value := getattr(dialects, field.name), Group)}


def _all_nodes(written: Configuration) -> NodeSettings:
    sharing, time_slice = written.sharing, written.native_devices.time_slice
    return NodeSettings(
        slots=sharing.slots,
        memory_scaling=sharing.memory_scaling,
        compute_scaling=sharing.compute_scaling,
        unreported_memory_mib=sharing.unreported_memory_mib,
        log_level=sharing.log_level,
        mig_strategy=written.mig.strategy,
        time_slice=TimeSlice(time_slice) if time_slice else None,
        modes=tuple(Mode(mode) for mode in sharing.modes or ()),
    )


def _with_overrides(common: NodeSettings, node: NodeOverride) -> NodeSettings:
    changes = {
        "slots": node.slots,
        "memory_scaling": node.memory_scaling,
        "compute_scaling": node.compute_scaling,
        "unreported_memory_mib": node.unreported_memory_mib,
        "log_level": node.log_level,
        "mig_strategy": node.mig_strategy,
        "time_slice": TimeSlice(node.time_slice) if node.time_slice else None,
        "modes": tuple(Mode(mode) for mode in node.modes) if node.modes else None,
    }
    return msgspec.structs.replace(
        common,
        excluded_uuids=node.excluded_gpus.uuids,
        excluded_indices=node.excluded_gpus.indices,
        **{name: value for name, value in changes.items() if value is not None},
    )


def _rule(written: AllowedInstances, path: str, where: str) -> MigRule:
    if (written.layouts is None) == (written.profiles is None):
        raise BadInput(f"{where}: {path} must have either layouts or profiles")
    if written.profiles is not None:
        return MigRule(models=written.models, profiles=written.profiles)
    layouts = []
    for layout in written.layouts or ():
        counts: dict[str, int] = {}
        for instances in layout:
            counts[instances.profile] = counts.get(instances.profile, 0) + instances.count
        layouts.append(tuple(counts.items()))
    profiles = tuple(dict.fromkeys(profile for layout in layouts for profile, _ in layout))
    return MigRule(models=written.models, profiles=profiles, layouts=tuple(layouts))


def _native_devices(written: Configuration) -> NativeDeviceSettings:
    native = written.native_devices
    return NativeDeviceSettings(
        config_map=native.config_map.name,
        namespace=native.config_map.namespace,
        default=native.default,
        fallbacks=native.fallbacks,
        configs=native.configs,
        mig_strategy=native.mig_strategy,
        equal_memory=native.replica_memory == "equal",
    )


def _pricing(written: Configuration) -> Pricing:
    pricing = written.pricing
    return Pricing(
        currency=pricing.currency,
        gpus=tuple(GpuPrice(model=each.model, per_hour=each.per_hour) for each in pricing.gpus),
        memory_percent=pricing.memory_percent,
        labels=tuple(dict.fromkeys(pricing.labels)),
    )


def _health(written: Configuration) -> HealthRules:
    health = written.health
    return HealthRules(
        ignores_all=health.ignored_xids == "all",
        ignored_xids=() if isinstance(health.ignored_xids, str) else health.ignored_xids,
        counted_xids=health.counted_xids,
        only_xids=health.only_xids,
        max_retired_pages=health.max_retired_pages,
        max_sram_errors=health.max_sram_errors,
        recovery_seconds=health.recovery_seconds,
    )


def _compatibility(written: Configuration) -> CompatibilitySettings:
    found = written.compatibility
    return CompatibilitySettings(
        labels=found.labels, annotations=found.annotations, resources=found.resources, metrics=found.metrics
    )
