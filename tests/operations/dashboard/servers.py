"""Servers of boards, with details from an API server that has no events unless a test gives it some."""

from typing import Any

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.details import DetailReader
from lamina.operations.dashboard.past import Past
from lamina.operations.dashboard.server import DashboardServer
from lamina.operations.dashboard.viewer_server import ViewerServer
from lamina.operations.dashboard.viewers import DashboardViewers
from lamina.ports.clock import Clock
from lamina.ports.kube import Kube
from lamina.ports.kube.fake import FakeKube
from lamina.ports.prometheus import Prometheus


def details_of(
    board: Board, clock: Clock, kube: Kube | None = None, prometheus: Prometheus | None = None
) -> DetailReader:
    return DetailReader(board, clock, kube or FakeKube(), Past(board, clock, prometheus))


def server_of(board: Board, clock: Clock, details: DetailReader | None = None, **options: Any) -> DashboardServer:
    return DashboardServer(board, clock, details or details_of(board, clock), **options)


def viewer_server_of(board: Board, clock: Clock, kube: Kube) -> ViewerServer:
    return ViewerServer(board, clock, DashboardViewers(kube, clock), details_of(board, clock, kube))
