"""The file system of the files that containers write: a small tmpfs from which the node runs no program.

A container can enlarge its `usage`, so the file is where that takes no space of anything else: the kernel counts what a
container adds as memory of that container, and there is only as much as the tmpfs has. All files have their pages from
their beginning, so a full tmpfs harms none of them. What is free is kept in a reserve for containers to come.

The agent is not privileged and cannot mount anything that the node sees. An init container does it, once, and the mount
stays when the agent is replaced. The directory of the agent itself cannot have the flags of this mount, because it
contains the facade and a hook, which must be executable.
"""

import logging
from pathlib import Path

from lamina.enforcement.reserve import fill_reserve, make_reserve
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mounts import PRIVATE, SAFE, TMPFS, Mounts

log = logging.getLogger(__name__)


async def provide_mount(folder: Path, size_mib: int, mounts: Mounts, files: Files) -> None:
    """Mount the tmpfs, unless it is there: running containers have their files in it. Raises Outside."""
    files.make_private_folder(folder)
    if is_bounded(folder, mounts):
        log.info("%s is mounted already", folder)
        return
    await mounts.tmpfs(folder, size_mib, mode=PRIVATE)
    files.label(folder)
    log.info("Mounted a tmpfs of %d MiB at %s", size_mib, folder)


async def remove_mount(folder: Path, mounts: Mounts) -> None:
    """Unmount the tmpfs if it is there. Raises Outside."""
    if is_bounded(folder, mounts):
        await mounts.unmount(folder)


def is_bounded(folder: Path, mounts: Mounts) -> bool:
    """Whether the files are on a tmpfs of their own. Raises Outside."""
    mounted = mounts.at(folder)
    return bool(mounted) and mounted[-1].kind == TMPFS and mounted[-1].safe


def provide_reserve(folder: Path, mounts: Mounts) -> None:
    """Keep the tmpfs full, so that no container can enlarge its file. Another file system stays as it is."""
    try:
        if is_bounded(folder, mounts):
            make_reserve(folder)
            fill_reserve(folder)
    except (OSError, Outside) as error:
        log.warning("Containers can enlarge their files in %s: %s", folder, error)


def missing_flags(folder: Path, mounts: Mounts) -> list[str]:
    """Which flags of `SAFE` the mount that contains `folder` lacks. Raises Outside."""
    for path in (folder, *folder.parents):
        if mounted := mounts.at(path):
            return [flag for flag in SAFE if flag not in mounted[-1].flags]
    return list(SAFE)


def report_flags(folder: Path, mounts: Mounts) -> None:
    """Log whether `folder` is protected, and how to protect it."""
    try:
        bounded, missing = is_bounded(folder, mounts), missing_flags(folder, mounts)
    except Outside as error:
        log.warning("Cannot check the mount of %s: %s", folder, error)
        return
    if not bounded:
        log.warning("%s is not a tmpfs of its own, so containers can fill the disk that it is on", folder)
    if missing:
        line = f"{folder} {folder} none bind,{','.join(SAFE)} 0 0"
        log.warning("%s is mounted without %s; on the node, add to /etc/fstab: %s", folder, ", ".join(missing), line)
    else:
        log.info("%s is mounted with %s", folder, ", ".join(SAFE))
