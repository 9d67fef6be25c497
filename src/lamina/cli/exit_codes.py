"""What commands end with, so that scripts can tell the cases apart."""

from collections.abc import Mapping
from enum import IntEnum

from lamina.errors import LaminaError


class ExitCode(IntEnum):
    """`lamina run` ends with what its command ends with; all other commands with one of these."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    NO_CLUSTER = 3
    NOT_ALLOWED = 4
    INTERRUPTED = 130
    TERMINATED = 143


class Interrupted(LaminaError):
    """Ctrl-C ended the command before it was done."""

    exit_code = ExitCode.INTERRUPTED


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done, or the answer is yes",
    ExitCode.NO: "the answer is no, or something outside failed, such as a server that refuses",
    ExitCode.BAD_INPUT: "bad input: an option, a file, a name or the configuration",
    ExitCode.NO_CLUSTER: "the cluster cannot be reached",
    ExitCode.NOT_ALLOWED: "the login is missing or has expired, or you lack a right in the cluster",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.TERMINATED: "ended by `kill`; 129 where the terminal was closed",
}

ANSWERS: Mapping[str, str] = {
    "why": "the pod, or a pod of the workload, is pending, refused or cannot start",
    "fits": "a pod does not fit, or it is not known whether it does",
    "doctor": "a check failed",
    "load": "the driver refuses memory or a launch",
    "verify": "a limit does not hold",
    "config diff": "the configurations differ",
    "uninstall": "something remains",
    "clean-node": "with `--check`: something remains",
}
"""What `ExitCode.NO` means for the commands that answer a question."""
