"""Where the components of a lab serve their metrics."""

from collections.abc import Iterator

import msgspec

from lamina.errors import BadInput
from lamina_lab.cluster import commands
from lamina_lab.cluster.plan import LabPlan
from lamina_lab.host import status
from lamina_lab.host.directory import lab_directory


def urls(name: str) -> Iterator[tuple[str, str]]:
    """Components that serve metrics now and their URLs: the controller, then each node's agent. Raises BadInput."""
    directory = lab_directory(name)
    if not status.is_running(directory):
        raise BadInput(f"lab {name} is not running; start it with `lamina lab up`")
    controller = commands.metrics_url(directory)
    if controller is not None:
        yield "controller", controller
    plan = msgspec.json.decode(directory.plan.read_bytes(), type=LabPlan)
    for index, node in enumerate(plan.nodes):
        try:
            yield node.name, directory.node(index).metrics_url.read_text().strip()
        except OSError:
            continue
