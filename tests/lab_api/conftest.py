import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kubectl import Kubectl
from tests.lab_api.apis import Bench
from tests.lab_api.servers import Threaded


@pytest.fixture
def lab() -> Iterator[Threaded]:
    threaded = Threaded()
    yield threaded
    threaded.close()


@pytest.fixture
def kubectl(lab: Threaded) -> Iterator[Kubectl]:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        lab.server.write_kubeconfig(kubeconfig)
        yield Kubectl(kubeconfig, Path(folder))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.webhooks.close()
