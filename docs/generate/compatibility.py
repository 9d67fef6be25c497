"""The page of keys of other systems: resources, annotations, schedulers, and container variables."""

from collections.abc import Iterator

from docs.generate.markdown import code, page, table
from lamina.configuration import DEFAULT
from lamina.dialects.container_variables import IGNORED
from lamina.dialects.protocol import Dialect
from lamina.dialects.registry import DIALECTS, name_index

_INTRODUCTION = """
What each dialect has in common with the system that it comes from, under the default configuration. [Requests and
annotations](requests.md) explains the meaning in full, [Imported configurations](configuration-imported.md) lists the
configuration keys, and [Metrics](metrics.md) the metrics.
"""
_RESOURCES = {
    "count": "number of GPUs",
    "memory": "memory of each GPU",
    "memory_percentage": "percent of the memory of each GPU",
    "cores": "percent of the time of each GPU",
    "priority": "priority on the GPU",
}
_ANNOTATIONS = {
    "types": "only these models",
    "excluded_types": "none of these models",
    "uuids": "only these GPUs",
    "excluded_uuids": "none of these GPUs",
    "modes": "the modes that the pod accepts",
    "node_policy": "the policy over nodes",
    "gpu_policy": "the policy over GPUs",
    "numa_bind": "all GPUs of a container on one NUMA node",
    "unsupported": "**refused** unless it is empty",
}
_POLICIES = (
    ("`GPU_CORE_UTILIZATION_POLICY=default`", "idle GPU time is lent to the container"),
    ("`GPU_CORE_UTILIZATION_POLICY=force`", "the requested cores are also the most that the container gets"),
    ("`GPU_CORE_UTILIZATION_POLICY=disable`", "the limit stays, with a warning: other pods on the GPU rely on it"),
    ("another `GPU_CORE_UTILIZATION_POLICY`", "**refused**"),
)
_VARIABLES = """
Admission reads these variables in the pod, before it runs. The facade reads none of them, because a tenant can change
them: limits come from files that the agent writes. A value in `valueFrom`, `envFrom` or the image is not read;
`GPU_CORE_UTILIZATION_POLICY` with `valueFrom` is refused. `CUDA_VISIBLE_DEVICES` chooses among the granted GPUs.
"""


def pages() -> Iterator[tuple[str, str]]:
    parts = [part for dialect in DIALECTS for part in _dialect(dialect)]
    rows = [*_POLICIES, *((code(name), f"no effect, with a warning: {instead}") for name, instead in IGNORED.items())]
    variables = ("## Variables of containers", _VARIABLES, table(("variable", "effect"), rows))
    yield "keys-of-others.md", page(
        "Keys of other systems", "src/lamina/dialects", _INTRODUCTION, *parts, *variables
    )  # fmt: skip


def _dialect(dialect: Dialect) -> Iterator[str]:
    names = name_index(DEFAULT).names[dialect.name]
    rows = [(code(getattr(names, field)), meaning) for field, meaning in _RESOURCES.items() if getattr(names, field)]
    if names.memory_unit_mib != 1 and names.memory:
        rows.append(("", f"one unit of {code(names.memory)} is {names.memory_unit_mib} MiB"))
    choices = dialect.choice_annotations
    meanings: dict[str, list[str]] = {}
    for field, meaning in _ANNOTATIONS.items():
        for key in getattr(choices, field):
            meanings.setdefault(key, []).append(meaning)
    rows += [(code(key), ", and ".join(each)) for key, each in meanings.items()]
    rows += [
        (code(f"{key}: {word}"), f"accepted: the mode {code(mode)}")
        for key in choices.modes
        for word, mode in choices.mode_values.items()
    ]
    rows += [(code(f"schedulerName: {name}"), "served by Lamina's scheduler") for name in dialect.schedulers]
    rows += [(code(key), "written on nodes for tools, never read") for key in dialect.node_annotations]
    if rows:  # else it has metrics alone
        yield f"## The dialect {dialect.name}"
        yield table(("key", "meaning"), rows)
