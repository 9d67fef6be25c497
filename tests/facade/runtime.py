"""A container runtime in small: run as a program in a fresh mount namespace, it becomes the container's command.

It does what runc does with a CDI spec, in that order: its mounts, those of NVIDIA's runtime (before or after), the
createContainer hooks, the change of the root. The image is this machine's own file system, with layers of its own where
mounts need places.

Arguments: a JSON file with the keys of `Plan`, then the command.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

VERSION = "550.54.15"
LIBRARY_FOLDER = f"/usr/lib/{platform.machine()}-linux-gnu"


class Plan(TypedDict):
    root: str  # an empty folder that becomes the container's root
    edits: dict[str, list[dict[str, object]]]  # containerEdits of the CDI spec
    driver: str  # the folder of the driver's libraries, as NVIDIA's runtime takes them from the node
    nvidia_first: bool
    image: list[tuple[str, str]]  # files of the image's own, below /usr/local: what they hold, and where they are
    links: list[tuple[str, str]]  # links of the image: where they lead, and where they are
    env: dict[str, str]


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def layer(root: Path, inside: str, layers: Path) -> None:
    """A writable layer over a folder of the image."""
    upper, work = (layers / inside.replace("/", "_") / kind for kind in ("upper", "work"))
    for folder in (upper, work):
        folder.mkdir(parents=True)
    options = f"lowerdir={inside},upperdir={upper},workdir={work}" + (
        ",userxattr" if os.environ.get("ROOTLESS") else ""
    )
    mount("-t", "overlay", "overlay", "-o", options, root / inside[1:])


def within(root: Path, inside: str) -> Path:
    """A path of the container, as it is seen from here. Links lead to places below the root, as in runc: the image's
    `/var/run` is a link to `/run`, which is not the node's `/run`."""
    place, parts = root, list(Path(inside).relative_to("/").parts)
    for _ in range(255):
        if not parts:
            return place
        step = place / parts.pop(0)
        if step.name == "..":
            place = place if place == root else place.parent
        elif step.is_symlink():
            target = step.readlink()
            place = root if target.is_absolute() else place
            parts = [part for part in target.parts if part != "/"] + parts
        else:
            place = step
    raise OSError(f"too many links in {inside}")


def bind(host: str | Path, place: Path, read_only: bool = True) -> None:
    if Path(host).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount("--bind", host, place)
    mount("-o", f"remount,bind,{'ro' if read_only else 'rw'},nosuid,nodev", place)


def hide_toolkits(folder: Path) -> None:
    """CUDA of this machine is not part of the image. A link to it would lead out of the root."""
    for place in folder.glob("cuda*"):
        if place.is_symlink():
            place.unlink()
        else:
            mount("-t", "tmpfs", "none", place)


def nvidia(root: Path, driver: Path) -> None:
    """The driver's files under their versioned names, and the links that ldconfig and the runtime make."""
    folder = root / LIBRARY_FOLDER[1:]
    for name in ("libcuda.so", "libnvidia-ml.so"):
        bind(driver / f"{name}.1", folder / f"{name}.{VERSION}")
        (folder / f"{name}.1").symlink_to(f"{name}.{VERSION}")
    (folder / "libcuda.so").symlink_to("libcuda.so.1")


def main(file: str, command: list[str]) -> None:
    plan: Plan = json.loads(Path(file).read_text())
    root, edits = Path(plan["root"]), plan["edits"]
    layers = root.with_name("layers")
    layers.mkdir()
    mount("-t", "tmpfs", "layers", layers)
    mount("--rbind", "/", root)
    mount("-t", "tmpfs", "run", root / "run")
    for inside in ("/etc", "/usr/local", LIBRARY_FOLDER):
        layer(root, inside, layers)
    hide_toolkits(root / "usr/local")
    for content, inside in plan["image"]:
        place = within(root, inside)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(content, place)
    for target, inside in plan["links"]:
        place = within(root, str(Path(inside).parent)) / Path(inside).name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    if plan["nvidia_first"]:
        nvidia(root, Path(plan["driver"]))
    for entry in edits["mounts"]:
        options = entry["options"]
        assert isinstance(options, list)
        bind(str(entry["hostPath"]), within(root, str(entry["containerPath"])), "ro" in options)
    if not plan["nvidia_first"]:
        nvidia(root, Path(plan["driver"]))
    for hook in edits["hooks"]:
        assert hook["hookName"] == "createContainer"
        subprocess.run([str(hook["path"]), *hook["args"][1:]], input=b"{}", check=True)  # type: ignore[index]
    os.chroot(root)
    os.chdir("/")
    os.execvpe(command[0], command, plan["env"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
