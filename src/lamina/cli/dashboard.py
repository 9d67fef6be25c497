"""`lamina dashboard`: a live page about GPUs, shares and waiting pods, for a browser on this machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace

if TYPE_CHECKING:
    from lamina.ports.kube import Kube


def dashboard(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on. 0 picks a free port.")] = 0,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            metavar="URL",
            help="Page of metrics from which to read what containers use: an agent's, or Prometheus's /federate. "
            "Can be repeated.",
        ),
    ] = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Serve a live, read-only page about GPUs, shares and waiting pods, on 127.0.0.1 only."""
    from lamina.cli.connection import chosen_namespace, with_cluster
    from lamina.operations.dashboard.board import Board
    from lamina.operations.dashboard.feed import ClusterFeed
    from lamina.operations.dashboard.server import DashboardServer, serve
    from lamina.operations.dashboard.usage_pages import UsagePages
    from lamina.ports.clock import SystemClock

    async def served(kube: "Kube") -> None:
        board, clock = Board(), SystemClock()
        pages = UsagePages(metrics or (), clock, board)
        server = DashboardServer(board, clock, namespace=mine)
        await serve(server, port, [ClusterFeed(kube, clock, board).run, pages.run], _say)

    mine = chosen_namespace(namespace, kubeconfig)
    with_cluster(kubeconfig, served)


def _say(address: str) -> None:
    typer.echo(f"The dashboard is at {address}")
    typer.echo("Keep this address secret: it is the key to the page. Ctrl-C ends it.")
