"""The alerts. Each has a section of its name in docs/how-to/alerts.md."""

from msgspec import Struct

INFO, WARNING, CRITICAL = "info", "warning", "critical"

GRANTED = "max by (node, gpu, model) (lamina_gpu_memory_granted_mebibytes)"
CAPACITY = "max by (node, gpu, model) (lamina_gpu_memory_capacity_mebibytes)"
SET_ASIDE = (
    "sum by (kind) (increase(lamina_objects_set_aside_total[1h])) > 0"
    " or sum by (kind) (lamina_objects_set_aside_total unless lamina_objects_set_aside_total offset 1h)"
)
"""A counter that appears with its first object has no increase, so what was not there an hour ago counts too."""


class Alert(Struct, frozen=True):
    """`hold` is for how long the query must have results before the alert fires."""

    name: str
    expr: str
    hold: str
    severity: str
    summary: str


ALERTS = (
    Alert(
        "LaminaNoLeader",
        "(sum(lamina_leading) or vector(0)) < 1",
        "1m",
        CRITICAL,
        "No controller leads, so no pod with GPUs is placed.",
    ),
    Alert(
        "LaminaLeaderChanged",
        "max(increase(lamina_leader_transitions_total[15m])) > 0",
        "0m",
        INFO,
        "Another replica of the controller became the leader.",
    ),
    Alert(
        "LaminaConfigurationRefused",
        "max(lamina_configuration_refused) == 1",
        "5m",
        WARNING,
        "The newest configuration is refused, and an older one is in force.",
    ),
    Alert(
        "LaminaCertificateExpires",
        "min by (certificate) (lamina_certificate_expiry_timestamp_seconds) - time() < 6 * 86400",
        "10m",
        CRITICAL,
        "The certificate of {{ $labels.certificate }} ends within six days and was not renewed.",
    ),
    Alert(
        "LaminaDecisionsFail",
        'sum by (verb) (increase(lamina_decisions_total{outcome="failed"}[10m])) > 0',
        "0m",
        WARNING,
        "Requests of the kind {{ $labels.verb }} fail in the controller.",
    ),
    Alert(
        "LaminaObjectsSetAside",
        SET_ASIDE,
        "0m",
        WARNING,
        "Objects of the kind {{ $labels.kind }} cannot be used and were set aside.",
    ),
    Alert(
        "LaminaPodsPending",
        "max by (namespace, cause) (lamina_pods_pending_longest_seconds) > 900",
        "1m",
        WARNING,
        "Pods in {{ $labels.namespace }} have fit nowhere for {{ $value | humanizeDuration }}: {{ $labels.cause }}.",
    ),
    Alert(
        "LaminaGpuOvercommitted",
        f"{GRANTED} > {CAPACITY}",
        "5m",
        CRITICAL,
        "More memory of GPU {{ $labels.gpu }} on {{ $labels.node }} is granted than it may be.",
    ),
    Alert(
        "LaminaNodeWithoutAgent",
        "max by (node) (lamina_gpu_memory_capacity_mebibytes) unless on (node) max by (node) (lamina_gpu_memory_bytes)",
        "10m",
        WARNING,
        "The node {{ $labels.node }} offers GPUs, but no agent serves metrics there.",
    ),
    Alert(
        "LaminaAgentStuck",
        "changes(lamina_gpus_read_timestamp_seconds[5m]) == 0",
        "2m",
        WARNING,
        "The agent of {{ $labels.node }} has not read its GPUs for five minutes.",
    ),
    Alert(
        "LaminaGpuUnhealthy",
        "lamina_gpu_healthy == 0 or lamina_mig_healthy == 0",
        "5m",
        WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} is unhealthy: {{ $labels.reason }}.",
    ),
    Alert(
        "LaminaMpsDaemonNotReady",
        "lamina_mps_ready == 0",
        "10m",
        WARNING,
        "The MPS daemon of GPU {{ $labels.gpu }} on {{ $labels.node }} does not serve clients: {{ $labels.state }}.",
    ),
    Alert(
        "LaminaMemorySpilled",
        "sum by (node, gpu) (lamina_container_memory_spilled_bytes) > 0",
        "15m",
        INFO,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} is full, and {{ $value | humanize1024 }}B went to host memory.",
    ),
    Alert(
        "LaminaMemoryRefused",
        "sum by (namespace, pod, container) (increase(lamina_container_memory_refusals_total[10m])) > 0",
        "0m",
        INFO,
        "The container {{ $labels.container }} of {{ $labels.namespace }}/{{ $labels.pod }} exceeds its memory limit.",
    ),
)
