"""What agents serve of the use of containers over time."""

from lamina.operations.advise.use_histories import HistoryOwner

MIB = 1 << 20


def history_lines(node: str, of: HistoryOwner, *, peak_mib: int, compute: float, observed_s: float) -> str:
    labels = ",".join(f'{key}="{value}"' for key, value in ({"node": node} | of._asdict()).items())
    return (
        f"lamina_history_memory_peak_bytes{{{labels}}} {peak_mib * MIB}\n"
        f'lamina_history_compute_percent{{{labels},quantile="0.5"}} 1\n'
        f'lamina_history_compute_percent{{{labels},quantile="0.99"}} {compute}\n'
        f"lamina_history_observed_seconds{{{labels}}} {observed_s}\n"
    )


def idle_line(node: str, pod: str, gpu: str, seconds: float) -> str:
    return f'lamina_pod_idle_seconds{{node="{node}",namespace="default",pod="{pod}",gpu="{gpu}"}} {seconds}\n'
