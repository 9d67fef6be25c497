"""`lamina dashboard`: a live page about GPUs, shares and waiting pods, for a browser on this machine."""

from typing import Annotated

import typer

from lamina.cli.connection import ClusterChoice, chosen_namespace, cluster_command, with_installation
from lamina.cli.options import Namespace
from lamina.cli.terminal import say
from lamina.errors import BadInput
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.details import DetailReader
from lamina.operations.dashboard.feed import ClusterFeed
from lamina.operations.dashboard.past import Past, prometheus_at
from lamina.operations.dashboard.server import DashboardServer, serve
from lamina.operations.dashboard.usage_pages import UsagePages
from lamina.operations.dashboard.viewer_server import ViewerServer
from lamina.operations.dashboard.viewers import DashboardViewers
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube
from lamina.ports.listener import parse_address


@cluster_command
def dashboard(
    choice: ClusterChoice,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on. 0 picks a free port.")] = 0,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            metavar="URL",
            envvar="LAMINA_DASHBOARD_METRICS",
            help="Page of metrics from which to read what containers use: an agent's, or Prometheus's /federate. "
            "Can be repeated.",
        ),
    ] = None,
    namespace: Namespace = "",
    bind: Annotated[
        str,
        typer.Option(
            "--bind",
            metavar="ADDRESS",
            envvar="LAMINA_DASHBOARD_BIND",
            help="Serve HTTPS at this address, such as :9396, to viewers with a bearer token. Each sees what the API "
            "server lets them list.",
        ),
    ] = "",
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus",
            metavar="URL",
            envvar="LAMINA_DASHBOARD_PROMETHEUS",
            help="Prometheus from which to read the history of pods and GPUs, such as http://127.0.0.1:9090. Without "
            "it, the page has what this command has seen.",
        ),
    ] = "",
) -> None:
    """Serve a live, read-only page about GPUs, shares and waiting pods, on 127.0.0.1 only without --bind."""

    async def served(kube: Kube) -> None:
        board, clock = Board(), SystemClock()
        details = DetailReader(board, clock, kube, Past(board, clock, past))
        pages = UsagePages(metrics or (), clock, board)
        writers = [ClusterFeed(kube, clock, board).run, pages.run]
        try:
            if address is not None:
                viewers = DashboardViewers(kube, clock)
                await ViewerServer(board, clock, viewers, details).serve(address, writers, _say_to_viewers)
            else:
                await serve(DashboardServer(board, clock, details, namespace=mine), port, writers, _say)
        finally:
            if past is not None:
                await past.close()

    if bind and port:
        raise BadInput("--bind names the port, as in :9396; leave out --port")
    address = parse_address(bind, where="--bind") if bind else None
    past = prometheus_at(prometheus) if prometheus else None
    mine = chosen_namespace(namespace, choice)
    with_installation(choice, served)


def _say(address: str) -> None:
    say(f"The dashboard is at {address}")
    say("Keep this address secret: it is the key to the page. Ctrl-C ends it.")


def _say_to_viewers(address: str) -> None:
    say(f"The dashboard is at {address}, for viewers with a token")
