"""Every entry point of the driver is classified, and the facade has each of them under its own name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lamina import native
from lamina_lab.simgpu import native as lab_native
from tests.facade.driver_libraries import LIBRARIES, ROOT, exported, generate, header_folders, reported


def test_the_committed_tables_are_those_of_the_lists() -> None:
    for path, text in generate.outputs().items():
        assert path.read_text() == text, f"run {generate.__file__}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_in_the_headers_is_classified(library: str) -> None:
    folders = header_folders()
    if not folders:
        pytest.skip("this machine has no CUDA headers")
    assert generate.unclassified(library, folders) == {}


def newest_headers() -> int:
    """The newest version of CUDA whose headers are here, as 1000 * major + 10 * minor; skips where there is none."""
    headers = [header for folder in header_folders() for header in folder.rglob("cuda.h")]
    versions = [re.search(r"^#define CUDA_VERSION (\d+)$", path.read_text(), re.MULTILINE) for path in headers]
    if not versions:
        pytest.skip("this machine has no CUDA headers")
    return max(int(found[1]) for found in versions if found)


def test_the_table_is_up_to_the_newest_headers() -> None:
    assert newest_headers() <= generate.reviewed("cuda")


def test_functions_with_several_forms_have_the_versions_of_the_headers() -> None:
    """Where cuGetProcAddress has to choose between our functions, by what NVIDIA says about the driver's.

    The list may know forms that are newer than all headers here: of those they say nothing.
    """
    newest = newest_headers()
    headers = [header for folder in header_folders() for header in folder.rglob("cuda*Typedefs.h")]
    reported: dict[tuple[str, str], set[int]] = {}
    for header in headers:
        for base, since, suffix in re.findall(r"PFN_(cu\w+?)_v(\d+)(_pts[zd])?\)", header.read_text()):
            reported.setdefault((base, suffix), set()).add(int(since))
    listed: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for name, (kind, since) in generate.read_classes("cuda").items():
        found = re.fullmatch(r"(cu\w+?)(?:_v(\d))?(_pts[zd])?", name)
        assert found is not None
        listed.setdefault((found[1], found[3] or ""), []).append((int(found[2] or 1), since, kind))
    several = {key: sorted(forms) for key, forms in listed.items() if len(forms) > 1 and key in reported}
    for key, entries in several.items():
        if any(generate.MACROS[kind] != "PASS" for _, _, kind in entries):
            assert [since for _, since, _ in entries if since <= newest] == sorted(reported[key]), key
    assert len(several) > 50


def test_a_new_function_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "cuda.h").write_text(
        "#define CUDAAPI\n#define cuMemAlloc cuMemAlloc_v9\ntypedef int CUresult;\n"
        "CUresult CUDAAPI\ncuMemAlloc(int a);\nCUresult CUDAAPI cuMemFree_v2(int a);\n"
        "#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM\nCUresult cuBrandNew_ptsz(void);\n#endif\n"
        "static inline CUresult cuOnlyHere(void) { return 0; }\n"
    )
    assert generate.unclassified("cuda", [tmp_path]) == {str(tmp_path / "cuda.h"): {"cuMemAlloc_v9", "cuBrandNew_ptsz"}}
    command = [sys.executable, generate.__file__, "--headers", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "cuBrandNew_ptsz" in done.stderr


@pytest.mark.parametrize("line", ["skip cuInit", "count", "count cuInit 1 2", "count cuInit\ncount cuInit"])
def test_a_line_that_says_nothing_is_refused(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cuda.classes").write_text(line)
    monkeypatch.setattr(generate, "HERE", tmp_path)
    with pytest.raises(ValueError, match=r"cuda\.classes:"):
        generate.read_classes("cuda")


@pytest.mark.parametrize("library", LIBRARIES)
def test_exactly_the_listed_names_are_exported(library: str) -> None:
    assert exported(native.path(LIBRARIES[library])) == set(generate.read_classes(library))


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_simulated_function_is_listed(library: str) -> None:
    simulated = exported(lab_native.path(LIBRARIES[library].replace("facade", "simgpu")))
    of_nvidia = {name for name in simulated if not name.startswith("simgpu")}  # the rest is the simulated nvidia-smi's
    assert of_nvidia <= set(generate.read_classes(library))


@pytest.mark.parametrize("library", LIBRARIES.values())
def test_loading_a_facade_does_nothing(library: str) -> None:
    path = native.path(library)
    dynamic = reported("readelf", "-dW", path)
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert f"soname: [{path.name}]" in dynamic
    assert [name for name in needed if not name.startswith(("libc.", "libdl.", "libpthread."))] == []
    assert "TEXTREL" not in dynamic
    imported = {
        line.split()[-1].partition("@")[0] for line in reported("nm", "-D", "--undefined-only", path).splitlines()
    }
    assert imported.isdisjoint({"exit", "_exit", "abort", "signal", "sigaction", "pthread_create", "atexit"})
    _, named, constructors = reported("readelf", "-SW", path).partition(".init_array")
    assert not named or int(constructors.split()[4], 16) <= 8, "the compiler's own constructor only; zig has none"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_c_library_of_2012_is_enough(library: str) -> None:
    """A preloaded library that asks for a newer version than the container's ends every program there."""
    text = subprocess.run(
        ["objdump", "-T", native.path(LIBRARIES[library])], capture_output=True, text=True, check=True
    ).stdout
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", text)}
    assert versions and max(versions) <= (2, 17)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_committed_prototypes_are_those_of_the_headers(library: str) -> None:
    """There is one source of prototypes; it is not typed by hand."""
    folders = header_folders()
    header = generate.newest_header(library, folders)
    committed = generate.prototypes_path(library).read_text()
    if header is None or f"{header.name} of CUDA {generate.cuda_version(header.with_name('cuda.h'))}." not in committed:
        pytest.skip("this machine has no headers of the version that the prototypes are from")
    prototypes = generate.prototypes(library, header, folders)
    assert prototypes == committed, f"run {generate.__file__} --headers {header.parent}"


def sizes(header: Path, types: list[str], folder: Path) -> str:
    """The sizes of types as a C program sees them that includes a header."""
    prints = "".join(f'printf("{name} %zu\\n", sizeof({name}));' for name in types)
    program = folder / "sizes"
    text = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ {prints} return 0; }}\n'
    command = ["cc", "-x", "c", f"-I{ROOT / 'native/include'}", f"-I{header.parent}", "-o", program, "-"]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return reported(program)


@pytest.mark.parametrize("library", LIBRARIES)
def test_our_structures_have_the_sizes_of_the_headers(library: str, tmp_path: Path) -> None:
    header = generate.newest_header(library, header_folders())
    if header is None:
        pytest.skip("this machine has no CUDA headers")
    ours = ROOT / f"native/include/{library}_min.h"
    types = re.findall(r"^(?:typedef struct \{.*)?\} ((?:CU|nvml)\w+);$", ours.read_text(), re.MULTILINE)
    assert len(types) > 15
    assert sizes(ours, types, tmp_path) == sizes(header, types, tmp_path)
