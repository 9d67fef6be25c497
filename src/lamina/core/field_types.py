"""Types of configuration values, and how a field is documented.

The type says which values are allowed, as a check and as a phrase that completes "must be ...". The field says what the
value means, in which unit, and why the default is what it is.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from lamina.core.fields import camel_case
from lamina.core.policies import GPU_POLICIES, NODE_POLICIES


class Group(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True, forbid_unknown_fields=True):
    """A group of fields. Unknown fields are refused; fields that have their defaults are not written."""


def must_be(phrase: str) -> Meta:
    """What completes "must be ..." in an error message."""
    return Meta(extra={"must_be": phrase})


def doc(meaning: str, *, unit: str = "", reason: str = "") -> Meta:
    """What a field means, in which unit it is, and the reason for its default."""
    extra = {name: text for name, text in (("x-unit", unit), ("x-reason", reason)) if text}
    return Meta(description=meaning, extra={"documents": True}, extra_json_schema=extra)


Text = Annotated[str, must_be("a string")]
Name = Annotated[str, Meta(max_length=253), must_be("a name of at most 253 characters")]
Namespaces = Annotated[tuple[Name, ...], must_be("a list of namespaces, or of * for all")]
NodeName = Annotated[str, Meta(min_length=1, max_length=253), must_be("the name of a node")]
ResourceName = Annotated[
    str,
    Meta(pattern=r"^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"),
    must_be("a resource name such as nvidia.com/gpu"),
]
Switch = Annotated[bool, must_be("true or false")]
Labels = Annotated[dict[str, str], must_be('labels with string values, such as gpu: "on"')]

Percent = Annotated[int, Meta(ge=0, le=100), must_be("an integer from 0 to 100")]
Mebibytes = Annotated[int, Meta(ge=0, le=2**31 - 1), must_be("an integer from 0 to 2147483647 (MiB)")]
MemoryUnit = Annotated[int, Meta(ge=1, le=2**20), must_be("an integer from 1 to 1048576")]
Count = Annotated[int, Meta(ge=0, le=1000), must_be("an integer from 0 to 1000")]
Slots = Annotated[int, Meta(ge=1, le=1000), must_be("an integer from 1 to 1000")]
Scaling = Annotated[float, Meta(ge=0.01, le=100), must_be("a number from 0.01 to 100")]
Seconds = Annotated[float, Meta(ge=0, le=86400), must_be("a number from 0 to 86400")]
Limit = Annotated[int, Meta(ge=0), must_be("an integer from 0")]
Price = Annotated[float, Meta(ge=0, le=1_000_000), must_be("a number from 0 to 1000000")]
Currency = Annotated[str, Meta(max_length=16), must_be("a name of at most 16 characters")]
ModelPart = Annotated[str, Meta(min_length=1, max_length=253), must_be("a part of the name of a GPU model")]
LabelKeys = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=317)], ...],
    Meta(max_length=4),
    must_be("a list of at most 4 keys of labels"),
]
Xids = Annotated[tuple[Annotated[int, Meta(ge=0)], ...], must_be("a list of XID numbers")]
LogLevel = Annotated[Literal[0, 1, 2, 3, 4], must_be("0 (errors), 1 (warnings), 2 or 3 (information) or 4 (debug)")]

MigStrategy = Annotated[Literal["none", "single", "mixed"], must_be("none, single or mixed")]
MigProfile = Annotated[str, Meta(pattern=r"^\d+g\.\d+gb([+-][a-z.]+)?$"), must_be("a MIG profile such as 1g.5gb")]
Models = Annotated[tuple[str, ...], Meta(min_length=1), must_be("a list of GPU models with at least one entry")]
TimeSlice = Annotated[Literal["default", "short", "medium", "long"], must_be("default, short, medium or long")]
Modes = Annotated[
    tuple[Literal["quota", "mps", "mig"], ...],
    Meta(min_length=1, max_length=3),
    must_be("a list of quota, mps and mig, the preferred mode first"),
]
ComputePolicy = Annotated[Literal["none", "cap", "weight"], must_be("none, cap or weight")]
GroupKinds = Annotated[
    tuple[Literal["JobSet", "LeaderWorkerSet", "RayCluster", "PyTorchJob", "Job"], ...],
    must_be("a list of JobSet, LeaderWorkerSet, RayCluster, PyTorchJob and Job"),
]
MemoryEnforcer = Annotated[Literal["auto", "driver", "facade"], must_be("auto, driver or facade")]
FailurePolicy = Annotated[Literal["Ignore", "Fail"], must_be("Ignore or Fail")]
ByClaimRule = Annotated[Literal["never", "asked", "always"], must_be("never, asked or always")]
NodePolicy = Annotated[str, Meta(pattern=f"^({'|'.join(NODE_POLICIES)})$"), must_be(" or ".join(NODE_POLICIES))]
_GPU_POLICY = f"({'|'.join(GPU_POLICIES)})"
GpuPolicy = Annotated[
    str,
    Meta(pattern=f"^{_GPU_POLICY}(, ?{_GPU_POLICY})*$"),
    must_be(f"{' or '.join(GPU_POLICIES)}, or several of them separated by commas"),
]
ReplicaMemory = Annotated[Literal["shared", "equal"], must_be("shared or equal")]
Fallback = Annotated[Literal["named", "single", "empty"], must_be("named, single or empty")]
SchedulerNames = Annotated[
    tuple[Name, ...], Meta(min_length=1), must_be("a list of scheduler names with at least one entry")
]
ResourcePatterns = Annotated[tuple[str, ...], must_be("a list of resource names, in which * matches anything")]
SystemNames = Annotated[tuple[str, ...], must_be("a list of systems")]
