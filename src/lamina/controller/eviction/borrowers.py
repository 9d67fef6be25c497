"""The controller evicts pods whose borrowed memory neighbors need, where the configuration allows it, after notice.

A neighbor has what it is guaranteed at once, because the borrower's memory moves to the host. Its programs are slow
then. Evicted, they can start on a GPU that has room. Of each GPU's borrowers the youngest goes first; agents list it.
"""

from collections.abc import Sequence

from lamina.controller.eviction.notices import NoticedEvictions, NoticeTerms
from lamina.core.evictions import Borrowers
from lamina.ledger.pod_reports import PodReport
from lamina.ports.kube import Object

EVERY_S = 5.0
NOTICE = "lamina.dev/borrower-notice"
"""The annotation that says when a borrower is evicted."""
KEEP = "lamina.dev/keep-borrower"
"""The annotation with which the owner of a pod keeps it although neighbors need its memory."""


class BorrowerEvictions(NoticedEvictions):
    """Those of the cluster."""

    given, kept = "BorrowerNotice", "BorrowerKept"
    problem = "It cannot be evicted, although neighbors need its memory"

    @property
    def _policy(self) -> Borrowers:
        return self.context.configuration.value.borrowers

    def terms(self) -> NoticeTerms | None:
        return NoticeTerms(NOTICE, KEEP, self._policy.notice_seconds) if self._policy.seconds else None

    def listed_since(self, report: PodReport) -> int | None:
        return report.displaced_since

    def is_due(self, namespace: str, since: float, now: float) -> bool:
        """Agents list a pod after the configured time."""
        return self._policy.covers(namespace)

    def message(self) -> str:
        return (
            "Neighbors need the memory that it borrows, which is on the host now. At {end} it is evicted, unless "
            f"it frees memory or there is room. To keep it, set the annotation {KEEP}=true"
        )

    async def end(self, pod: Object, due: Sequence[Object]) -> None:
        await self.evictor.evict(pod, "BorrowerEvicted", "Evicted, because neighbors needed its memory")
