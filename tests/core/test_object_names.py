"""Which names objects of Kubernetes can have."""

import pytest

from lamina.core.object_names import is_object_name


@pytest.mark.parametrize("name", ["a", "7", "gpu-node-1", "node-1.rack-2.example.com", "a" * 253])
def test_names_that_the_api_server_accepts(name: str) -> None:
    assert is_object_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a/b", "a b", "a\n", "ü", "a" * 254])
def test_names_that_it_refuses(name: str) -> None:
    assert not is_object_name(name)
