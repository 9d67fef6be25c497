"""The facade in front of the clients: as it is built, and as it was built for an earlier CUDA than the driver's."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.facade.clients.container import ClientContainer
from tests.facade.old_table import build_old_facade

EARLIER = 12_040


@pytest.fixture(scope="session")
def earlier_facade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_old_facade(tmp_path_factory.mktemp("earlier"), EARLIER)


@pytest.fixture(params=["this table", "an earlier table"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., ClientContainer]:
    """Makes a container for a client."""
    earlier = request.param != "this table"
    return partial(ClientContainer, tmp_path, facade=request.getfixturevalue("earlier_facade") if earlier else None)
