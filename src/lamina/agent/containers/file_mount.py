"""Whether the files that containers write are on a mount from which the node runs no program.

The mounts of these files in containers have the flags in any case, and on the node only root enters their directory.
The flags of the directory's own mount hold for root and its programs too, and while no agent runs. The agent is not
privileged and cannot change the node's mounts, so an administrator has to make this one. The directory of the agent
itself cannot have the flags, because it contains the facade and a hook, which must be executable.
"""

import logging
from pathlib import Path

from lamina.errors import Outside
from lamina.ports.mounts import SAFE, Mounts

log = logging.getLogger(__name__)


def missing_flags(folder: Path, mounts: Mounts) -> list[str]:
    """Which flags of `SAFE` the mount that contains `folder` lacks. Raises Outside."""
    for path in (folder, *folder.parents):
        if mounted := mounts.at(path):
            return [flag for flag in SAFE if flag not in mounted[-1].flags]
    return list(SAFE)


def report_flags(folder: Path, mounts: Mounts) -> None:
    """Log whether `folder` is protected, and how to protect it."""
    try:
        missing = missing_flags(folder, mounts)
    except Outside as error:
        log.warning("Cannot check the mount of %s: %s", folder, error)
        return
    if missing:
        line = f"{folder} {folder} none bind,{','.join(SAFE)} 0 0"
        log.warning("%s is mounted without %s; on the node, add to /etc/fstab: %s", folder, ", ".join(missing), line)
    else:
        log.info("%s is mounted with %s", folder, ", ".join(SAFE))
