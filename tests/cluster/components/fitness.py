"""What a machine must allow before a cluster is tried on it, so that a machine that does not gets one sentence."""

import ctypes
import os
import shutil

from tests.cluster.components import cgroups
from tests.cluster.components.commands import Unavailable, run
from tests.cluster.components.sandboxes import SPACES

TOOLS = ("apt-get", "buildah", "cc", "dpkg-deb", "ip", "lsns", "mount", "nsenter", "patch", "tar", "unshare")
"""What is used of the machine itself."""
WATCHES = 40
"""Instances of inotify that the programs of one cluster hold, with some to spare; a user has only so many."""


def check() -> None:
    """Raises Unavailable with the first thing that is missing."""
    if os.geteuid() != 0:
        raise Unavailable("the cluster under test needs root, for namespaces and control groups")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise Unavailable(f"the cluster under test needs {', '.join(missing)} on PATH")
    try:
        run(["unshare", *SPACES, "--fork", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/run"])
    except Unavailable as error:
        raise Unavailable(f"the cluster under test needs namespaces and mounts of its own: {error}") from error
    _check_groups()
    _check_watches()


def _check_groups() -> None:
    for hierarchy in cgroups.hierarchies():
        group = hierarchy / f"lamina-fitness-{os.getpid()}"
        try:
            group.mkdir()
            group.rmdir()
        except OSError as error:
            raise Unavailable(f"the cluster under test needs control groups of its own: {error}") from error


def _check_watches() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    held = [library.inotify_init1(os.O_CLOEXEC) for _ in range(WATCHES)]
    for each in held:
        if each >= 0:
            os.close(each)
    if -1 in held:
        raise Unavailable(
            f"the cluster under test needs {WATCHES} instances of inotify and {held.index(-1)} are free here: raise "
            "fs.inotify.max_user_instances, or end other clusters of this machine"
        )
