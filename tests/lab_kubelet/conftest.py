from collections.abc import Iterator

import pytest

from tests.lab_kubelet.cluster import OneKubelet


@pytest.fixture(scope="package")
def shared_cluster() -> Iterator[OneKubelet]:
    """One API server and kubelet for tests that leave both alive."""
    cluster = OneKubelet()
    cluster.start_kubelet("--label", "gpu=on", "--container-env", "FROM_NODE=yes", "--gpu-env", "LD_LIBRARY_PATH=/sim")
    yield cluster
    cluster.close()


@pytest.fixture
def cluster() -> Iterator[OneKubelet]:
    """A cluster of one's own, its kubelet not started yet."""
    own = OneKubelet()
    yield own
    own.close()
