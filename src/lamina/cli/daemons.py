"""`lamina agent` and `lamina control`: the two parts that run in a cluster, one per node and one per cluster.

Every option has an environment variable beside it, because a manifest sets those more easily.
"""

from pathlib import Path

import typer

KUBECONFIG = typer.Option(
    None, "--kubeconfig", envvar="KUBECONFIG", help="Where the cluster is; inside a pod, the pod's own account."
)
CONFIG = typer.Option(None, "--config", envvar="LAMINA_CONFIG", help="Lamina's configuration file.")
