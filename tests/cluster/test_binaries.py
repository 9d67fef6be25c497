"""KUBE_BIN_DIR is checked before anything is fetched or started."""

from pathlib import Path

import pytest

from tests.cluster.components import binaries, cache
from tests.cluster.components.commands import Unavailable


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(name: str, make: object) -> Path:
        raise AssertionError(f"{name} was asked for")

    monkeypatch.setattr(cache, "kept", fetch)


@pytest.mark.parametrize("missing", binaries.PROGRAMS)
def test_a_program_missing_from_kube_bin_dir_is_named(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in binaries.PROGRAMS:
        (tmp_path / name).touch(0o644 if name == missing else 0o755)
    monkeypatch.setenv("KUBE_BIN_DIR", str(tmp_path))
    with pytest.raises(Unavailable, match=f"^KUBE_BIN_DIR is {tmp_path}, which has no {missing}; add what is missing"):
        binaries.find()


def test_a_kube_bin_dir_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_BIN_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match="nowhere, which is not a directory"):
        binaries.find()
