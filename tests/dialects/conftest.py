"""A registry that has the toy dialect as well."""

import pytest

from lamina.configuration import Config, load
from lamina.dialects import registry
from tests.dialects.toy import ToyDialect


@pytest.fixture
def toy_config(monkeypatch: pytest.MonkeyPatch) -> Config:
    """The default configuration where the toy dialect is registered."""
    monkeypatch.setattr(registry, "DIALECTS", (*registry.DIALECTS, ToyDialect()))
    return load("", "the default")
