"""The control plane: leader, decisions and their times, configuration, certificates, objects set aside."""

from lamina.install.telemetry.panels import Query, counted, graph, number, rows
from lamina.install.telemetry.queries import SET_ASIDE

PANELS = (
    number(
        "Replicas that lead", "sum(lamina_leading) or vector(0)", counted("replicas"),
        "1 is right. With 0, no pod with GPUs is placed: see the alert LaminaNoLeader.",
    ),
    number(
        "Changes of the leader", "max(lamina_leader_transitions_total)", counted("changes"),
        "How often another replica became the leader, since the installation. If it grows without upgrades, look for "
        "restarts.",
    ),
    number(
        "Configuration refused", "max(lamina_configuration_refused)", "bool_yes_no",
        "Yes while the newest configuration is refused and an older one is in force. The events of the ConfigMap have "
        "the mistake.",
    ),
    number(
        "First certificate ends in", "min(lamina_certificate_expiry_timestamp_seconds) - time()", "s",
        "Time until the first certificate of the controller ends. It is renewed before that; below six days there is "
        "an alert.",
    ),
    number(
        "Agents", "count(lamina_gpus_read_timestamp_seconds)", counted("agents"),
        "Agents that serve metrics. If there are fewer than nodes with GPUs, see the alert LaminaNodeWithoutAgent.",
    ),
    number(
        "Pods that defragmentation moved", "sum(lamina_defragmentation_moved_pods_total)", counted("pods"),
        "Pods evicted so that a GPU becomes idle, since the controller started. `lamina defrag` says what it would do.",
    ),
    graph(
        "Decisions", "ops",
        "Requests of kube-scheduler and the API server per second, by verb and outcome. `failed` is a defect: see the "
        "controller's log.",
        Query("sum by (verb, outcome) (rate(lamina_decisions_total[$__rate_interval]))", "{{verb}} {{outcome}}"),
    ),
    graph(
        "Time of decisions, 99th percentile", "s",
        "Time from a request to its answer, which 99 of 100 stay below. Near a second, give the controller more CPU.",
        Query(
            "histogram_quantile(0.99, sum by (verb, le) (rate(lamina_decision_seconds_bucket[$__rate_interval])))",
            "{{verb}}",
        ),
    ),
    graph(
        "Time of decisions, mean", "s",
        "Mean time from a request to its answer. It grows with the number of nodes and pods that wait.",
        Query(
            "sum by (verb) (rate(lamina_decision_seconds_sum[$__rate_interval]))"
            " / sum by (verb) (rate(lamina_decision_seconds_count[$__rate_interval]))",
            "{{verb}}",
        ),
    ),
    graph(
        "GPUs that defragmentation freed", counted("GPUs"),
        "GPUs that became idle, and plans that were aborted, since the controller started. If many are aborted, look "
        "at disruption budgets.",
        Query("sum by (outcome) (lamina_defragmentation_total)", "{{outcome}}"),
    ),
    rows(
        "Objects set aside in the last hour", SET_ASIDE, counted("objects"),
        "Objects that a component cannot use, by kind. Its log names each once, with the reason: correct or delete it.",
    ),
)  # fmt: skip
