"""From a file `version: v1` to the settings that follow from it, by NVIDIA's rules and with NVIDIA's messages.

`sharing.mps` takes precedence over `sharing.timeSlicing`, and shares whole GPUs only. Renaming single resources,
choosing devices and patterns of names are read and checked, but ignored with a warning, as NVIDIA does.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from lamina.configuration import strict
from lamina.configuration.nvidia import document
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.sharing import GPU, MPS_CLIENTS, SHARED, ReplicaSharing, Replicated, Strategy
from lamina.errors import BadInput

PREFIX = "nvidia.com/"
MAX_NAME = 63
_CDI_PREFIX = "cdi.k8s.io/"
DEFAULT_MPS_ROOT = "/run/nvidia/mps"
_DEVICE = re.compile(r"[0-9]+(:[0-9]+)?|(GPU|MIG)-[0-9a-fA-F-]{36}|MIG-GPU-[0-9a-fA-F-]{36}/[0-9]+/[0-9]+")
_MPS_ALONE = "sharing.timeSlicing is ignored because of sharing.mps: a GPU has one sharing strategy at a time"
_MPS_ONE = (
    "failRequestsGreaterThanOne: false in sharing.mps is ignored: a container has the pipe directory of one GPU, and "
    "two replicas of it would not be more than one"
)
_IGNORED = "is not yet supported in the config. Ignoring..."


class NvidiaConfig(Struct, frozen=True, kw_only=True):
    """The settings of one node. Paths and switches that only concern NVIDIA's own programs stay in the document."""

    mig_strategy: str = "none"
    mps_root: str = DEFAULT_MPS_ROOT
    allocation: str = "distributed"
    by_index: bool = False
    """NVIDIA_VISIBLE_DEVICES names GPUs by index."""
    list_strategies: tuple[str, ...] = ("envvar",)
    pass_device_specs: bool = False
    dev_root: str = "/"
    """The directory below which the node has its device nodes."""
    environment: tuple[tuple[str, str], ...] = ()
    """Further environment variables of containers: GPUDirect, gdrcopy, MOFED."""
    sharing: ReplicaSharing = ReplicaSharing()
    machine_type_file: str = ""
    """The file with the product name of the machine; empty for the usual one."""
    label_timestamps: bool = True
    """Whether a label has the time of the last change of labels."""
    imex_channels: tuple[int, ...] = ()
    imex_required: bool = False
    """Containers get no GPU while a channel is missing."""
    warnings: tuple[str, ...] = ()


def load(text: str, where: str, *, mig_strategy: str = "", mps_root: str = "") -> NvidiaConfig:
    """The settings of the file `text`. `mig_strategy` and `mps_root` override its flags, as NVIDIA's options do.

    Raises BadInput with one sentence that begins with `where`.
    """
    loaded = load_mapping(text, where)
    version = loaded.get("version") or "v1"
    if version != "v1":
        raise BadInput(f"{where}: unknown version: {version}")
    read = strict.decode(loaded, document.PluginConfig, where)
    flags = read.flags or document.Flags()
    plugin, discovery = flags.plugin or document.PluginFlags(), flags.gfd or document.Gfd()
    _check_offered(flags, plugin, where)
    sharing, warnings = _sharing(read.sharing or document.SharingSection(), loaded.get("sharing") or {}, where)
    if read.resources is not None and any(_customized(read.resources)):
        warnings.append("Customizing the 'resources' field is not yet supported in the config. Ignoring...")
    if flags.use_node_feature_api:
        warnings.append("flags.useNodeFeatureAPI is ignored: labels are written on the node itself")
    strategy = mig_strategy or flags.mig_strategy or "none"
    if sharing.strategy is Strategy.MPS and strategy == "mixed":
        raise BadInput(f"{where}: using --mig-strategy=mixed is not supported with MPS")
    root = mps_root or flags.mps_root or DEFAULT_MPS_ROOT
    if not root.startswith("/"):
        raise BadInput(f"{where}: flags.mpsRoot must be an absolute path, got {root!r}")
    return NvidiaConfig(
        mig_strategy=strategy,
        mps_root=root,
        allocation=plugin.shared_devices_allocation_policy or "distributed",
        by_index=plugin.device_id_strategy == "index",
        list_strategies=_listed(plugin.device_list_strategy),
        pass_device_specs=bool(plugin.pass_device_specs),
        dev_root=flags.nvidia_dev_root or flags.nvidia_driver_root or "/",
        environment=tuple(_environment(flags)),
        sharing=sharing,
        machine_type_file=discovery.machine_type_file or "",
        label_timestamps=not discovery.no_timestamp,
        imex_channels=(read.imex.channel_ids or ()) if read.imex else (),
        imex_required=bool(read.imex and read.imex.required),
        warnings=tuple(warnings),
    )


def _check_offered(flags: document.Flags, plugin: document.PluginFlags, where: str) -> None:
    """Raises BadInput for what cannot be done here as NVIDIA's plugin does it."""
    if flags.device_discovery_strategy == "tegra":
        raise BadInput(
            f"{where}: flags.deviceDiscoveryStrategy must be auto or nvml, got tegra, whose GPUs have no NVML"
        )
    prefix = plugin.cdi_annotation_prefix or _CDI_PREFIX
    if "cdi-annotations" in _listed(plugin.device_list_strategy) and prefix != _CDI_PREFIX:
        raise BadInput(
            f"{where}: flags.plugin.cdiAnnotationPrefix must be {_CDI_PREFIX}, where container runtimes look for CDI "
            f"devices, got {prefix!r}"
        )


def _listed(written: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (written,) if isinstance(written, str) else written or ("envvar",)


def _environment(flags: document.Flags) -> Iterator[tuple[str, str]]:
    for name, on in (("GDRCOPY", flags.gdrcopy_enabled), ("GDS", flags.gds_enabled), ("MOFED", flags.mofed_enabled)):
        if on:
            yield f"NVIDIA_{name}", "enabled"


def _customized(resources: document.Resources) -> Iterator[bool]:
    """Whether a pattern says anything but the one by which all devices have their usual name."""
    for pattern in (*(resources.gpus or ()), *(resources.mig or ())):
        resource_name(pattern.name, "resources")
        yield pattern.pattern != "*" or resource_name(pattern.name, "resources") != GPU


def _sharing(read: document.SharingSection, loaded: dict[str, Any], where: str) -> tuple[ReplicaSharing, list[str]]:
    found = {}
    warnings: list[str] = []
    for key, strategy, one in (("timeSlicing", Strategy.TIME_SLICING, False), ("mps", Strategy.MPS, True)):
        section = read.mps if strategy is Strategy.MPS else read.time_slicing
        if section is not None:
            found[strategy] = _replicated(section, f"sharing.{key}", where, strategy, one, warnings)
    if Strategy.MPS in found:
        _check_mps(found[Strategy.MPS], where)
        warnings += [_MPS_ALONE] if Strategy.TIME_SLICING in found else []
        warnings += [] if found[Strategy.MPS].one_at_most else [_MPS_ONE]
        return msgspec.structs.replace(found[Strategy.MPS], one_at_most=True), warnings
    return found.get(Strategy.TIME_SLICING) or ReplicaSharing(), warnings


def _check_mps(sharing: ReplicaSharing, where: str) -> None:
    """Raises BadInput for what MPS cannot share on any GPU."""
    for each in sharing.resources:
        if each.name.startswith(f"{PREFIX}mig-"):
            raise BadInput(f"{where}: sharing.mps: MPS is not supported on MIG devices, such as {each.name}; use {GPU}")
        if each.replicas > MPS_CLIENTS:
            raise BadInput(
                f"{where}: sharing.mps: invalid device maximum allowed replicas exceeded: "
                f"{each.replicas} > {MPS_CLIENTS}"
            )


def _replicated(
    section: document.Replicas, path: str, where: str, strategy: Strategy, one_at_most: bool, warnings: list[str]
) -> ReplicaSharing:
    """`one_at_most` is the strategy's default for failRequestsGreaterThanOne."""
    if not section.resources:
        raise BadInput(f"{where}: {path}: no resources specified")
    resources: list[Replicated] = []
    for number, each in enumerate(section.resources):
        here = f"{where}: {path}.resources[{number}]"
        if not each.name:
            raise BadInput(f"{here}: no resource name specified")
        name = resource_name(each.name, here)
        if each.replicas is None:
            raise BadInput(f"{here}: no replicas specified")
        if each.replicas < 2:
            raise BadInput(f"{here}: number of replicas must be >= 2")
        check_devices(each.devices, here)
        if any(other.name == name for other in resources):
            raise BadInput(f"{here}: duplicate resource {name}; write it once")
        offered = resource_name(f"{name}{SHARED}", here) if section.rename_by_default else name
        if each.rename and resource_name(each.rename, here) not in (offered, f"{name}{SHARED}"):
            warnings.append(f"Setting the 'rename' field in {path}.resources {_IGNORED}")
        if each.devices not in (None, "all"):
            warnings.append(f"Customizing the 'devices' field in {path}.resources {_IGNORED}")
        resources.append(Replicated(name=name, offered=offered, replicas=each.replicas))
    failing = section.fail_requests_greater_than_one
    return ReplicaSharing(
        strategy=strategy, resources=tuple(resources), one_at_most=one_at_most if failing is None else failing
    )


def resource_name(written: str, where: str) -> str:
    """The name with NVIDIA's prefix, which may be left out. Raises BadInput for one that is too long."""
    name = written if written.startswith(PREFIX) else PREFIX + written
    if len(name) > MAX_NAME:
        raise BadInput(f"{where}: the resource name {name} must have at most {MAX_NAME} characters, got {len(name)}")
    return name


def check_devices(written: Any, where: str) -> None:
    """Raises BadInput with NVIDIA's messages, unless `written` is all, a count, or a list of GPUs and MIG devices."""
    if written is None or written == "all":
        return
    if isinstance(written, str):
        raise BadInput(f"{where}: devices set as '{written}' but the only valid string input is 'all'")
    if isinstance(written, int) and not isinstance(written, bool):
        if written <= 0:
            raise BadInput(f"{where}: devices set as '{written}' but a count of devices must be > 0")
        return
    if not isinstance(written, list):
        raise BadInput(f"{where}: unrecognized type for devices spec: {_as_json(written)}")
    for each in written:
        if isinstance(each, bool) or not isinstance(each, int | str) or not _DEVICE.fullmatch(str(each)):
            raise BadInput(f"{where}: unsupported type for device in devices list: {each}")


def _as_json(written: Any) -> str:
    """For error messages. YAML has keys that JSON does not have."""
    try:
        return msgspec.json.encode(written).decode()
    except TypeError:
        return repr(written)
