"""Clusters of this machine that a command could have meant when there is no kubeconfig.

Other distributions add what they know of, as the lab does when its commands are added.
"""

from collections.abc import Callable, Iterable

Search = Callable[[], Iterable[tuple[str, str]]]
"""Finds clusters that run: what each is called, such as "lab default", and its kubeconfig."""

_searches: list[Search] = []


def add(search: Search) -> None:
    """Let commands name what this finds."""
    _searches.append(search)


def hint() -> str:
    """What to append to a sentence about a missing kubeconfig; nothing where no cluster runs."""
    found = [cluster for search in _searches for cluster in search()]
    return "".join(f"; {name} is running: export KUBECONFIG={kubeconfig}" for name, kubeconfig in found)
