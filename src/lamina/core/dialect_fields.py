"""The groups `dialects` and `compatibility` of a Configuration, as far as they are the same for all dialects.

Each dialect that has settings adds its section to `dialects`. The dialects also say which names the lists of
`compatibility` may have, and which they have by default: see `lamina.configuration.form`.
"""

from typing import Annotated

import msgspec

from lamina.core.field_types import ComputePolicy, Group, ResourcePatterns, Switch, SystemNames, doc

OTHER_RESOURCES = (
    "nvidia.com/mig-*",
    "nvidia.com/*.shared",
    "nvidia.com/hostdev*",
    "nvidia.com/rdma*",
    "nvidia.com/sriov*",
    "nvidia.com/mlnx*",
    "nvidia.com/*[A-Z]*",
)
"""Resources of other systems under nvidia.com/: MIG, renamed replicas, network; KubeVirt's devices have capitals."""


DialectPolicy = Annotated[
    ComputePolicy | None,
    doc(
        "How shares of compute of this dialect's pods are enforced: `cap` or `weight` or `none`, as in "
        "`sharing.computePolicy`, which decides if this is not set.",
        reason="As `sharing.computePolicy`.",
    ),
]


class Dialects(Group, frozen=True, kw_only=True):
    """How pods request GPUs."""

    other_resources: Annotated[
        ResourcePatterns,
        doc(
            "Resources with the prefix of a dialect that belong to other systems and are ignored; `*` matches "
            "anything. Other unknown names are refused, because a misspelled limit would not be enforced.",
            reason="Resources of NVIDIA's plugin, of network operators and of KubeVirt.",
        ),
    ] = OTHER_RESOURCES

    def sections(self) -> dict[str, Group]:
        """The section of each dialect, by its name."""
        fields = {field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)}
        return {name: section for name, section in fields.items() if isinstance(section, Group)}


class Compatibility(Group, frozen=True, kw_only=True):
    """What tools of other systems find on nodes and in metrics."""

    labels: Annotated[
        Switch,
        doc(
            "Whether nodes get the labels of GPU feature discovery, such as nvidia.com/gpu.product.",
            reason="Node selectors and affinities in existing manifests keep working.",
        ),
    ] = True
    annotations: Annotated[
        SystemNames,
        doc(
            "Systems whose annotation with the node's GPUs is written on nodes.",
            reason="Dashboards and tools of these systems read it.",
        ),
    ] = ()
    resources: Annotated[
        SystemNames,
        doc(
            "Systems whose resources for memory and compute have the sums of the node as amounts; those of the others "
            "have a large number, because grants decide where pods go.",
            reason="The systems that show such sums themselves.",
        ),
    ] = ()
    metrics: Annotated[
        SystemNames,
        doc(
            "Systems under whose names metrics are served in addition to Lamina's own.",
            reason="Existing dashboards and alerts keep working.",
        ),
    ] = ()
