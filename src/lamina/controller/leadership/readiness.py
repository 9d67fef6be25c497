"""Whether this replica may answer kube-scheduler: it has read the cluster once, and it leads."""

from lamina.controller.leadership.election import LeaderElection
from lamina.controller.observation.watches import Watches


class Readiness:
    """True while the replica is ready, see the module."""

    def __init__(self, watches: Watches, election: LeaderElection) -> None:
        self._watches = watches
        self._election = election

    @property
    def warm(self) -> bool:
        """Whether the cluster has been read."""
        return self._watches.synced.is_set()

    def __bool__(self) -> bool:
        return self.ready()

    def ready(self) -> bool:
        """The same for parts that only ask whether they may act."""
        return self.warm and self._election.leading

    @property
    def reason(self) -> str:
        """Why this replica is not ready, as a sentence, or nothing."""
        if not self.warm:
            return f"the ledger is not synced yet; still to be listed: {', '.join(self._watches.unlisted)}"
        return self._election.reason
