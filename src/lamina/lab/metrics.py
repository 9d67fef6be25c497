"""Where the parts of a lab serve their metrics."""

from collections.abc import Iterator

import msgspec

from lamina.errors import BadInput
from lamina.lab import commands, status
from lamina.lab.directory import lab_directory
from lamina.lab.plan import Plan


def urls(name: str) -> Iterator[tuple[str, str]]:
    """Each part that serves metrics now, with the URL: the control part, then the nodes' agents. Raises BadInput."""
    directory = lab_directory(name)
    if not status.is_running(directory):
        raise BadInput(f"no lab {name} is running; `lamina lab up` starts one")
    extender = commands.extender_url(directory)
    if extender is not None:
        yield "control", f"{extender}/metrics"
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=Plan)
    for index, node in enumerate(plan.nodes):
        try:
            yield node.name, directory.node(index).metrics_url.read_text().strip()
        except OSError:
            continue
