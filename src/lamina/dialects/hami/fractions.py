"""A count below 1, which is part of one GPU's memory, as users of Huawei CCE write it.

    nvidia.com/gpu: 0.1   10 % of the memory of one GPU

The API server accepts no fraction of an extended resource, so admission replaces it in a pod by one GPU and 10 % of its
memory. CCE rounds that memory down to 128 MiB; here it is the percentage itself. In the template of a workload, which
the API server checks as soon as admission is done, it becomes

    nvidia.com/gpu: 0, lamina.dev/gpu-percentage: 10

Only admission writes this form, and each of its two resources shows whether the other one is still meant. So a template
that was changed later is understood without its history: a whole number of GPUs, or none, leaves a percentage that no
longer applies, and admission removes it. In a pod of the template this form becomes what a fraction becomes.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from lamina.core.grants import MAX_GPUS
from lamina.core.quantities import parse_quantity
from lamina.dialects.containers import ContainerManifest, read_integer, show
from lamina.dialects.patches import PatchOperation, add_limits, add_request, remove_resource
from lamina.dialects.protocol import ResourceNames
from lamina.errors import BadInput

PERCENTAGE = "lamina.dev/gpu-percentage"
"""In a template, next to a count of 0: a fraction of a GPU in percent. Only admission writes it."""


def read_fraction(container: ContainerManifest, names: ResourceNames) -> int | None:
    """The percentage of one GPU's memory that a count below 1 stands for, in a pod or in a template.

    None for any other count, valid or not. Raises BadInput for a fraction that is not supported.
    """
    if names.count not in container.requested:
        return None
    try:
        count = _read_count(container, names)
    except BadInput:
        return None
    if count == 0 and PERCENTAGE in container.requested:
        return read_integer(container, PERCENTAGE, 1, 99)
    if not 0 < count < 1:
        return None
    where, written = f"{container.where}: {names.count}", container.requested[names.count]
    percent = count * 100
    if percent.denominator != 1:
        raise BadInput(
            f"{where} must be an integer from 1 to {MAX_GPUS} or a fraction from 0.01 to 0.99, got {show(written)}"
        )
    other = next((name for name in names.all if name in container.requested and name != names.count), None)
    if other is not None:
        raise BadInput(
            f"{where} must be an integer if {other} is requested too, got {show(written)}; remove one of them"
        )
    return int(percent)


def fill_template(containers: Sequence[ContainerManifest], names: ResourceNames) -> Iterator[PatchOperation]:
    """Write fractions in the form for templates, and remove percentages that no longer apply."""
    for container in containers:
        count = _read_count(container, names)
        if count % 1:
            yield from add_limits(container, {names.count: "0", PERCENTAGE: str(read_fraction(container, names))})
            yield from add_request(container, names.count, "0")
        elif names.count not in container.requested or count != 0:
            yield from remove_resource(container, PERCENTAGE)


def template_condition(amounts: str, names: ResourceNames) -> str:
    """CEL: whether `amounts` has a fraction of a GPU, or what admission wrote for one before."""
    count = f"{amounts}['{names.count}']"
    requested = f"'{names.count}' in {amounts}"
    fraction = f"{requested} && !string({count}).matches('^[0-9]+$')"
    obsolete = f"'{PERCENTAGE}' in {amounts} && !({requested} && string({count}) == '0')"
    return f"(({fraction}) || ({obsolete}))"


def _read_count(container: ContainerManifest, names: ResourceNames) -> Fraction:
    """How many GPUs the container requests; 0 where it requests none."""
    written = container.requested.get(names.count, 0)
    if isinstance(written, str) and written.isdecimal() and len(written) == 1 and written.isascii():
        return Fraction(int(written))
    return parse_quantity(written, where=f"{container.where}: {names.count}").value
