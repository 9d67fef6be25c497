"""The alerts. Each has a section of its name in docs/how-to/alerts.md."""

from msgspec import Struct

from lamina.install.telemetry.queries import CAPACITY, GRANTED, SET_ASIDE

INFO, WARNING, CRITICAL = "info", "warning", "critical"


class Alert(Struct, frozen=True):
    """`hold` is for how long the query must have results before the alert fires. `description` says what follows from
    it, and what to look at first."""

    name: str
    expr: str
    hold: str
    severity: str
    summary: str
    description: str


ALERTS = (
    Alert(
        "LaminaNoLeader",
        "(sum(lamina_leading) or vector(0)) < 1",
        "1m",
        CRITICAL,
        "No controller leads, so no pod with GPUs is placed.",
        "Running pods are not affected, new ones stay pending. See whether the controller's pods run and are "
        "ready, and what their logs say they wait for.",
    ),
    Alert(
        "LaminaLeaderChanged",
        "max(increase(lamina_leader_transitions_total[15m])) > 0",
        "0m",
        INFO,
        "Another replica of the controller became the leader.",
        "Normal during an upgrade or when a node is drained. If it repeats, look for restarts of the controller "
        "and for a slow API server.",
    ),
    Alert(
        "LaminaConfigurationRefused",
        "max(lamina_configuration_refused) == 1",
        "5m",
        WARNING,
        "The newest configuration is refused, and an older one is in force.",
        "A controller that starts now would wait until the text is correct. The events of the ConfigMap lamina "
        "name the mistake and its place.",
    ),
    Alert(
        "LaminaCertificateExpires",
        "min by (certificate) (lamina_certificate_expiry_timestamp_seconds) - time() < 6 * 86400",
        "10m",
        CRITICAL,
        "The certificate of {{ $labels.certificate }} ends within six days and was not renewed.",
        "When it ends, pods with GPUs are refused or stay pending. The controller's log says why it could not "
        "renew the certificate.",
    ),
    Alert(
        "LaminaDecisionsFail",
        'sum by (verb) (increase(lamina_decisions_total{outcome="failed"}[10m])) > 0',
        "0m",
        WARNING,
        "Requests of the kind {{ $labels.verb }} fail in the controller.",
        "This is a defect, and pods may wait longer because of it. The controller's log has a traceback. Please "
        "report it.",
    ),
    Alert(
        "LaminaObjectsSetAside",
        SET_ASIDE,
        "0m",
        WARNING,
        "Objects of the kind {{ $labels.kind }} cannot be used and were set aside.",
        "The component continues without them. Its log names each of them once, with the reason.",
    ),
    Alert(
        "LaminaPodsPending",
        "max by (namespace, cause) (lamina_pods_pending_longest_seconds) > 900",
        "1m",
        WARNING,
        "Pods in {{ $labels.namespace }} have fit nowhere for {{ $value | humanizeDuration }}: {{ $labels.cause }}.",
        "`lamina why POD` explains in numbers why a pod waits. Free GPUs, request less, add nodes, or correct a "
        "request that no node can fulfill.",
    ),
    Alert(
        "LaminaGpuOvercommitted",
        f"{GRANTED} > {CAPACITY}",
        "5m",
        CRITICAL,
        "More memory of GPU {{ $labels.gpu }} on {{ $labels.node }} is granted than it may be.",
        "Placement never does that by itself. See whether `sharing.memoryScaling` was lowered or the GPU was "
        "replaced by a smaller one.",
    ),
    Alert(
        "LaminaNodeWithoutAgent",
        "max by (node) (lamina_gpu_memory_capacity_mebibytes) unless on (node) max by (node) (lamina_gpu_memory_bytes)",
        "10m",
        WARNING,
        "The node {{ $labels.node }} offers GPUs, but no agent serves metrics there.",
        "New containers with GPUs do not start there, and limits of running ones hold. See whether the agent's "
        "pod runs on this node and whether Prometheus reaches it.",
    ),
    Alert(
        "LaminaAgentStuck",
        "changes(lamina_gpus_read_timestamp_seconds[5m]) == 0",
        "2m",
        WARNING,
        "The agent of {{ $labels.node }} has not read its GPUs for five minutes.",
        "Health and MIG devices may be out of date. Usually a call into the driver does not return: look at "
        "`dmesg` and `nvidia-smi` on the node.",
    ),
    Alert(
        "LaminaGpuUnhealthy",
        "lamina_gpu_healthy == 0 or lamina_mig_healthy == 0",
        "5m",
        WARNING,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} is unhealthy: {{ $labels.reason }}.",
        "No new pods are placed there, and running ones stay. Look at the node's events, and reset or replace the GPU.",
    ),
    Alert(
        "LaminaMpsDaemonNotReady",
        "lamina_mps_ready == 0",
        "10m",
        WARNING,
        "The MPS daemon of GPU {{ $labels.gpu }} on {{ $labels.node }} does not serve clients: {{ $labels.state }}.",
        "Pods that use MPS on this GPU do not start. `lamina doctor` names the process or setting that is in the way.",
    ),
    Alert(
        "LaminaMemorySpilled",
        "sum by (node, gpu) (lamina_container_memory_spilled_bytes) > 0",
        "15m",
        INFO,
        "GPU {{ $labels.gpu }} of {{ $labels.node }} is full, and {{ $value | humanize1024 }}B went to host memory.",
        "Programs run, but slower. Lower `sharing.memoryScaling`, or move a pod to another GPU.",
    ),
    Alert(
        "LaminaMemoryRefused",
        "sum by (namespace, pod, container) (increase(lamina_container_memory_refusals_total[10m])) > 0",
        "0m",
        INFO,
        "The container {{ $labels.container }} of {{ $labels.namespace }}/{{ $labels.pod }} exceeds its memory limit.",
        "The program probably reports that it is out of memory. Request more, or configure it to use less.",
    ),
)
