"""The keys of a file `version: v1`, as NVIDIA's device plugin, MPS daemon and feature discovery share it.

Every key is read. Where NVIDIA's programs print their own configuration they write null for what was not set, so null
is allowed everywhere and means the default.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Switch = Annotated[bool, Meta(description="true or false")]
Text = Annotated[str, Meta(description="a string")]
Path = Annotated[str, Meta(description="a path")]
MigStrategy = Annotated[Literal["none", "single", "mixed"], Meta(description="none, single or mixed")]
Discovery = Annotated[Literal["auto", "nvml", "tegra"], Meta(description="auto, nvml or tegra")]
ListStrategy = Annotated[
    Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"],
    Meta(description="envvar, volume-mounts, cdi-annotations or cdi-cri"),
]
IdStrategy = Annotated[Literal["uuid", "index"], Meta(description="uuid or index")]
Allocation = Annotated[Literal["distributed", "packed"], Meta(description="distributed or packed")]
Duration = Annotated[
    str,
    Meta(
        pattern=r"^(infinite|0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$",
        description='a duration such as 60s or 1m30s, or "infinite"',
    ),
]


class PluginFlags(Struct, frozen=True, kw_only=True, rename="camel"):
    """`flags.plugin`."""

    pass_device_specs: Switch | None = None
    device_list_strategy: ListStrategy | tuple[ListStrategy, ...] | None = None
    device_id_strategy: IdStrategy | None = field(default=None, name="deviceIDStrategy")
    cdi_annotation_prefix: Text | None = None
    nvidia_ctk_path: Path | None = field(default=None, name="nvidiaCTKPath")
    container_driver_root: Path | None = None
    shared_devices_allocation_policy: Allocation | None = None


class Gfd(Struct, frozen=True, kw_only=True, rename="camel"):
    """`flags.gfd`: GPU feature discovery."""

    oneshot: Switch | None = None
    no_timestamp: Switch | None = None
    sleep_interval: Duration | None = None
    output_file: Path | None = None
    machine_type_file: Path | None = None


class Flags(Struct, frozen=True, kw_only=True, rename="camel"):
    """`flags`."""

    mig_strategy: MigStrategy | None = None
    fail_on_init_error: Switch | None = None
    mps_root: Path | None = None
    nvidia_driver_root: Path | None = None
    nvidia_dev_root: Path | None = None
    gdrcopy_enabled: Switch | None = None
    gds_enabled: Switch | None = None
    mofed_enabled: Switch | None = None
    use_node_feature_api: Switch | None = field(default=None, name="useNodeFeatureAPI")
    device_discovery_strategy: Discovery | None = None
    plugin: PluginFlags | None = None
    gfd: Gfd | None = None


class Pattern(Struct, frozen=True, kw_only=True):
    """One of `resources`: devices whose model or profile looks like `pattern` under the name `name`."""

    pattern: Text
    name: Text


class Resources(Struct, frozen=True, kw_only=True):
    """`resources`."""

    gpus: tuple[Pattern, ...] | None = None
    mig: tuple[Pattern, ...] | None = None


class ReplicatedResource(Struct, frozen=True, kw_only=True):
    """One of `sharing.*.resources`. The rules check it, with NVIDIA's messages."""

    name: Text | None = None
    rename: Text | None = None
    devices: Any = None
    replicas: Annotated[int, Meta(description="an integer from 2")] | None = None


class Replicas(Struct, frozen=True, kw_only=True, rename="camel"):
    """`sharing.timeSlicing` or `sharing.mps`."""

    rename_by_default: Switch | None = None
    fail_requests_greater_than_one: Switch | None = None
    resources: tuple[ReplicatedResource, ...] | None = None


class SharingSection(Struct, frozen=True, kw_only=True, rename="camel"):
    """`sharing`."""

    time_slicing: Replicas | None = None
    mps: Replicas | None = None


class Imex(Struct, frozen=True, kw_only=True):
    """`imex`."""

    channel_ids: tuple[Annotated[int, Meta(ge=0, le=0, description="[] or [0]")], ...] | None = field(
        default=None, name="channelIDs"
    )
    required: Switch | None = None


class PluginConfig(Struct, frozen=True, kw_only=True):
    """The whole file."""

    version: Annotated[str, Meta(description="v1")] | None = None
    flags: Flags | None = None
    resources: Resources | None = None
    sharing: SharingSection | None = None
    imex: Imex | None = None
