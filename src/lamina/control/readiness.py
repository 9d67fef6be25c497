"""Whether this replica may answer the scheduler: the cluster has been read once, and the replica leads."""

from lamina.control.leadership import Leadership
from lamina.control.watching import Watching


class Readiness:
    """See the module."""

    def __init__(self, watching: Watching, leadership: Leadership) -> None:
        self._watching = watching
        self._leadership = leadership

    @property
    def warm(self) -> bool:
        """Whether the cluster has been read."""
        return self._watching.rebuilt.is_set()

    def __bool__(self) -> bool:
        return self.warm and self._leadership.leading

    @property
    def lacking(self) -> str:
        """The sentence that says why not, or nothing."""
        if not self.warm:
            return f"the ledger is not rebuilt yet; still to be read: {', '.join(self._watching.missing)}"
        return self._leadership.lacking
