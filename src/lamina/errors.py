"""The tree of errors that Lamina raises on purpose.

    LaminaError            one sentence for a person; the command line prints it and ends with `exit_code`
    ├── BadInput           an input is wrong: a manifest, a configuration, an argument
    │   └── NoKubeconfig   there is no kubeconfig, so no cluster is named
    ├── NotYet             the answer is not there yet; the caller should ask again
    └── Outside            another system failed or refused: Kubernetes, NVML, kubelet, the file system

Catch the narrowest one that you can act upon. A cause is chained with `raise ... from`.
"""


class LaminaError(Exception):
    """Base of all errors with a sentence for a person. `exit_code` is what a command ends with."""

    exit_code = 2


class BadInput(LaminaError):
    """An input is wrong; the message says what, where, and what is allowed."""


class NoKubeconfig(BadInput):
    """The file that names the cluster does not exist."""


class NotYet(LaminaError):
    """Not an error of anybody: the record or answer is still on its way."""


class Outside(LaminaError):
    """A system outside Lamina failed; the message names it."""

    exit_code = 1
