"""Samples of accounts, and pages of agents that have them."""

from collections.abc import Iterator

Sample = tuple[str, dict[str, str], float]


def account_samples(
    namespace: str, workload: str, *, model: str = "Tesla T4", label: str = "", past: bool = False, **figures: float
) -> Iterator[Sample]:
    """`figures` are seconds, such as memory_requested or gib_used. With a label, `workload` is its value."""
    labels = {"namespace": namespace, "model": model}
    if past:
        prefix, labels = "lamina_past_workload_", labels | {"label": label}
    elif label:
        prefix, labels = "lamina_label_", labels | {"label": label, "value": workload}
    else:
        prefix, labels = "lamina_workload_", labels | {"kind": "Deployment", "workload": workload}
    for name, seconds in figures.items():
        part, _, figure = name.partition("_")
        if part == "gib":
            yield f"{prefix}memory_gibibyte_seconds_total", labels | {"figure": figure}, seconds
        else:
            yield f"{prefix}gpu_seconds_total", labels | {"part": part, "figure": figure}, seconds


def account_page(node: str, *samples: Sample) -> str:
    """What the agent of a node serves."""
    lines = []
    for name, labels, value in samples:
        written = ",".join(f'{key}="{each}"' for key, each in {"node": node, **labels}.items())
        lines.append(f"{name}{{{written}}} {value}\n")
    return "".join(lines)
