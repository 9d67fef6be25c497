"""The environment that holds a plain process tree."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from lamina import native
from lamina.enforcement import environment
from lamina.enforcement.environment import FACADE
from lamina.errors import BadInput
from lamina_lab import simgpu

DRIVER = Path("/opt/driver")


def test_it_names_facade_folder_and_driver(tmp_path: Path) -> None:
    cuda, nvml, alias = tmp_path / "facade/libcuda.so.1", tmp_path / "facade/libnvidia-ml.so.1", FACADE[2]
    variables = environment(tmp_path, DRIVER, {"HOME": "/home/me"})
    assert variables == {
        "HOME": "/home/me", "LD_PRELOAD": f"{cuda}:{nvml}:{native.path(f'facade/{alias}')}",
        "LAMINA_DIR": str(tmp_path), "LAMINA_DRIVER": "/opt/driver",
    }  # fmt: skip


def test_below_a_path_with_a_space_programs_get_the_facade_as_it_was_built(tmp_path: Path) -> None:
    (tmp_path / "a folder").mkdir()
    assert environment(tmp_path / "a folder", DRIVER)["LD_PRELOAD"].split(":") == [
        str(native.path(f"facade/{name}")) for name in FACADE
    ]


def test_where_nothing_can_be_executed_programs_get_the_facade_as_it_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NOSUID))
    built = [str(native.path(f"facade/{name}")) for name in FACADE]
    assert environment(tmp_path, DRIVER)["LD_PRELOAD"].split(":") == built
    assert not (tmp_path / "facade").exists()


def test_a_program_that_runs_keeps_the_file_that_it_has_mapped(tmp_path: Path) -> None:
    library = Path(environment(tmp_path, DRIVER)["LD_PRELOAD"].split(":")[0])
    with library.open("rb") as mapped:
        before = mapped.read()
        environment(tmp_path, simgpu.driver_folder())
        mapped.seek(0)
        assert mapped.read() == before != library.read_bytes()
    assert sorted(path.name for path in library.parent.iterdir()) == sorted(FACADE[:2])


def test_what_was_preloaded_stays_behind_the_facades(tmp_path: Path) -> None:
    first = environment(tmp_path, DRIVER, {"LD_PRELOAD": "/a.so /b.so"})
    assert first["LD_PRELOAD"].split(":")[len(FACADE) :] == ["/a.so", "/b.so"]
    assert environment(tmp_path, DRIVER, first) == first


def test_another_facade_is_not_loaded_behind_the_facade(tmp_path: Path) -> None:
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
    outer = environment(tmp_path / "outer", DRIVER, {"LD_PRELOAD": "/a.so"})
    inner = environment(tmp_path / "inner", DRIVER, outer)
    assert inner == environment(tmp_path / "inner", DRIVER, {"LD_PRELOAD": "/a.so"})


def test_paths_that_the_loader_cannot_take_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="absolute"):
        environment(tmp_path, Path("driver"))
    monkeypatch.setattr(native, "path", lambda name: tmp_path / "a folder" / name)
    with pytest.raises(BadInput, match="without spaces"):
        environment(tmp_path, DRIVER)
