"""What commands warn of that show a cluster: what could not be read of it, and a configuration that is refused."""

from lamina.cli.connection import ClusterChoice, with_installation
from lamina.cli.terminal import say
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView

_SHOWN_NODES = 5


def read_cluster(choice: ClusterChoice) -> ClusterView:
    """One reading of pods, grants and inventories, with a warning about a configuration that is refused.

    Raises BadInput where Lamina is not installed.
    """
    cluster = with_installation(choice, cluster_reader.read)
    warn_of_refused_configuration(cluster)
    return cluster


def warn_of_unread_nodes(cluster: ClusterView) -> None:
    """Print a warning where nodes may not be listed."""
    if cluster.hosts is None:
        say("Warning: you may not list nodes, so only GPUs and quotas are checked; ask for `lamina-view`", err=True)


def warn_of_refused_configuration(cluster: ClusterView) -> None:
    """Print a warning where the configuration in force is not that of the ConfigMap."""
    for warning in warnings(cluster):
        say(f"Warning: {warning}", err=True)


def silent_agents(use: ClusterUse) -> list[str]:
    """A sentence about nodes whose agents do not say what is used, if there are any."""
    if not use.silent:
        return []
    nodes = sorted(use.silent)
    more = f" and {len(nodes) - _SHOWN_NODES} more" if len(nodes) > _SHOWN_NODES else ""
    return [f"No usage data from {', '.join(nodes[:_SHOWN_NODES])}{more}: {use.silent[nodes[0]]}"]


def warnings(cluster: ClusterView) -> list[str]:
    """Sentences about what a view lacks: the configuration in force is not that of the ConfigMap, or claims of pods may
    not be read."""
    refusal, unread = cluster.config_refusal, cluster.claims.unread
    claims = unread and any(pod["spec"].get("resourceClaims") for pod in cluster.pods)
    return [*([f"the previous configuration is in force: {refusal}"] if refusal else []), *([unread] if claims else [])]
