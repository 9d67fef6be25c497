"""Writes the programs of lab containers to disk."""

import shlex
import shutil
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

_MODULE = """\
#!/bin/sh
exec {python} -P -m {module} "$@"
"""

_NAMED = """\
#!/bin/sh
LAMINA_LAB_PROGRAM=/usr/bin/{name} exec {python} -P -m {module} "$@"
"""

_SCRIPT = """\
#!/bin/sh
exec {python} -I -S {path} "$@"
"""

_PYTHON = """\
#!/bin/sh
# Python, with the scripts of the container's image: a path that is not on this machine is looked for under the root.
root={root}
words=$#
found=
for word; do
    if [ -z "$found" ]; then
        case $word in
        -c | -m) found=yes ;;
        -*) ;;
        *)
            found=yes
            if [ "${{word#/}}" != "$word" ] && [ ! -e "$word" ] && [ -e "$root$word" ]; then word=$root$word; fi
            ;;
        esac
    fi
    set -- "$@" "$word"
done
shift "$words"
exec {python} "$@"
"""


def install(bin_dir: Path, root_dir: Path) -> None:
    """Write nvidia-smi, nvidia-cuda-mps-control, gpu-load, dcgmproftester and python3 to `bin_dir`, scripts below
    `root_dir`.

    Both directories are created if missing; existing files of these names are replaced.
    """
    bin_dir.mkdir(parents=True, exist_ok=True)
    root_dir.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(sys.executable)
    _script(bin_dir / "nvidia-smi", _MODULE.format(python=python, module="lamina_lab.smi"))
    _script(bin_dir / "gpu-load", _MODULE.format(python=python, module="lamina.operations.gpu_load"))
    for name in ("dcgmproftester11", "dcgmproftester12"):
        _script(bin_dir / name, _NAMED.format(python=python, module="lamina_lab.programs.dcgmproftester", name=name))
    control = _SCRIPT.format(python=python, path=shlex.quote(str(_HERE / "mps_control.py")))
    _script(bin_dir / "nvidia-cuda-mps-control", control)
    _script(bin_dir / "python3", _PYTHON.format(python=python, root=shlex.quote(str(root_dir.resolve()))))
    shutil.copyfile(_HERE / "gpu_torch.py", root_dir / "gpu_torch.py")


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
