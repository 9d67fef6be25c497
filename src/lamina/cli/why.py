"""`lamina why`: why a pod is pending."""

from typing import Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace


def why(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    namespace: Namespace = "default",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Explain why a pod is pending, per node or group of equal nodes, in numbers."""
    from lamina.cli.connection import read_cluster
    from lamina.cli.terminal import console
    from lamina.operations import pending_reasons

    for line in pending_reasons.why(read_cluster(kubeconfig), namespace, pod):
        console.print(line, soft_wrap=True, markup=False)
