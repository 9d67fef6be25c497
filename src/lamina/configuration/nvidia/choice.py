"""Which of several named configurations a node uses, by the rules of NVIDIA's config-manager."""

from collections.abc import Collection, Sequence

from lamina.errors import BadInput

LABEL = "nvidia.com/device-plugin.config"
"""The label of a node that names its configuration."""
NAMED, SINGLE, EMPTY = "named", "single", "empty"
FALLBACKS = (NAMED, SINGLE, EMPTY)
NAMED_DEFAULT = "default"


class AbsentConfig(BadInput):
    """A configuration that does not exist; `name` is empty where there is not even a ConfigMap to look for it."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


def choose(label: str, names: Collection[str], *, default: str, fallbacks: Sequence[str], where: str) -> str | None:
    """The name of the configuration for a node with this value of LABEL, or None for none.

    The label takes precedence over `default`, and that over the fallbacks in their order: the configuration named
    "default", the only one there is, or none. Raises AbsentConfig, `where` first, for a name that does not exist,
    and BadInput where nothing is chosen.
    """
    if label:
        return _existing(label, names, f"{where}: specified config {label} does not exist")
    if default:
        return _existing(default, names, f"{where}: specified default config {default} does not exist")
    for fallback in fallbacks:
        if fallback == NAMED and NAMED_DEFAULT in names:
            return NAMED_DEFAULT
        if fallback == SINGLE and len(names) == 1:
            return next(iter(names))
        if fallback == EMPTY:
            return None
    raise BadInput(
        f"{where}: no config is chosen: the node has no label {LABEL}, there is no default, and the fallbacks "
        f"{', '.join(fallbacks) or '(none)'} find none among {', '.join(sorted(names)) or 'no configs'}"
    )


def _existing(name: str, names: Collection[str], otherwise: str) -> str:
    if name not in names:
        raise AbsentConfig(f"{otherwise}; there are {', '.join(sorted(names)) or 'none'}", name)
    return name
