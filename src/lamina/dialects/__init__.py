"""Dialects: the resource names and annotations of GPU-sharing systems, parsed into neutral requests. Pure.

registry        the dialects that are supported: HAMi, Volcano, CCE, KAI and NVIDIA, a folder each
opentelemetry   OpenTelemetry's names of metrics, without resources
protocol        what a dialect implements
parser          a pod -> its request, in whatever dialect it is written
admission       the defaults that admission fills into pods
hidden_gpus     what hides GPUs from containers that request none
templates       what admission changes in the pod templates of workloads
high_priority   where high priority counts
container_variables  HAMi's variables of containers
unsupported     resources that no dialect has
by_claim        pods that are served by a claim that Lamina generates
template_nodes  what a node that does not exist yet will offer, by its template
native_devices  the resources of NVIDIA's device plugin, which need no grant
object_shapes   the types of what is read of pods and workloads
groups          pod groups, whose members are to run together

choices, containers, patches, granted, samples and metrics are what dialects share.
"""

from lamina.dialects.admission import (
    IGNORING_LABELS,
    explain_missing_defaults,
    fill_defaults,
    places,
    scheduler_names,
    unserved_warning,
)
from lamina.dialects.container_variables import lending_notice
from lamina.dialects.hidden_gpus import hide_from_ephemeral, hide_gpus
from lamina.dialects.object_shapes import check_pod, check_workload
from lamina.dialects.parser import DEFAULT_SCHEDULER, parse, served_by_claim, ticket_holders, tickets_requested
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import Dialect, ResourceNames, WantedSize
from lamina.dialects.registry import (
    dialect_named,
    pod_annotations,
    quota_names,
    requesting_annotations,
    resource_domains,
    resource_names,
)
from lamina.dialects.templates import (
    fill_template,
    find_template,
    resize_template,
    template_condition,
    template_notice,
    template_refusal,
    template_warnings,
)

__all__ = [
    "DEFAULT_SCHEDULER",
    "IGNORING_LABELS",
    "Dialect",
    "PatchOperation",
    "ResourceNames",
    "WantedSize",
    "check_pod",
    "check_workload",
    "dialect_named",
    "explain_missing_defaults",
    "fill_defaults",
    "fill_template",
    "find_template",
    "hide_from_ephemeral",
    "hide_gpus",
    "lending_notice",
    "parse",
    "places",
    "pod_annotations",
    "quota_names",
    "requesting_annotations",
    "resize_template",
    "resource_domains",
    "resource_names",
    "scheduler_names",
    "served_by_claim",
    "template_condition",
    "template_notice",
    "template_refusal",
    "template_warnings",
    "ticket_holders",
    "tickets_requested",
    "unserved_warning",
]
