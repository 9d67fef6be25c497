"""Names, labels and ports of the installed objects, as the chart has them; a test compares the two."""

PART_OF = {"app.kubernetes.io/part-of": "lamina"}
COMPONENT = "app.kubernetes.io/component"
INSTANCE, MANAGER = "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"
"""The labels with the name of Helm's release, and with the program that installed it."""
CONTROLLER, SCHEDULER, AGENT, MPS = "lamina-controller", "lamina-scheduler", "lamina-agent", "lamina-mps"
DASHBOARD = "lamina-dashboard"
TEST = "lamina-test"
"""The pod of `helm test`."""
METRICS_PORT = 9394
"""Of agents."""


def chosen(part: str) -> dict[str, str]:
    """The labels that select the pods of a component."""
    return {"app.kubernetes.io/name": "lamina", COMPONENT: part.removeprefix("lamina-")}


def labels(part: str = "") -> dict[str, str]:
    """The labels of an object, of one component or of all."""
    return (chosen(part) if part else {"app.kubernetes.io/name": "lamina"}) | PART_OF
