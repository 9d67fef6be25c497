"""The controller evicts pods whose borrowed memory neighbors need, where the configuration allows it, after notice.

A neighbor has what it is guaranteed at once, because the borrower's memory moves to the host. Its programs are slow
then. Evicted, they can start on a GPU that has room. Of each GPU's borrowers the youngest goes first; agents list it.
"""

import logging

from lamina.controller.assembly import Controller
from lamina.core.borrowers import BorrowerPolicy
from lamina.operations.notices import Notices, NoticeStep, NoticeTerms, next_step
from lamina.ports.kube import PODS, Object
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

EVERY_S = 5.0
NOTICE = "lamina.dev/borrower-notice"
"""The annotation that says when a borrower is evicted."""
KEEP = "lamina.dev/keep-borrower"
"""The annotation with which the owner of a pod keeps it although neighbors need its memory."""


async def evict_borrowers(controller: Controller) -> None:
    """Run rounds until canceled."""
    failures = FailureLog(log, "Evicting borrowers paused: %s")
    await poll(BorrowerRounds(controller).round, controller.context.clock, every_s=EVERY_S, failures=failures)


class BorrowerRounds:
    """The rounds of one replica."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._notices = Notices(controller)
        self._kube, self._clock = controller.context.kube, controller.context.clock
        self._may_have_notice = True
        """Whether pods may have notices: pods are asked for only then, or while agents list some."""

    async def round(self) -> None:
        """Bring each pod one step further. Raises Outside for what cannot be asked."""
        policy = self._controller.context.configuration.value.borrowers
        if not policy.after_s or not self._controller.readiness:
            self._may_have_notice = True
            return
        since = self._notices.listed(lambda report: report.displaced_since)
        if not since and not self._may_have_notice:
            return
        pods = (await self._kube.list(PODS)).items
        concerned = [pod for pod in pods if self._notices.concerns(pod, since, NOTICE)]
        self._may_have_notice = bool(concerned)
        for pod in concerned:
            if not self._controller.readiness:
                return
            step = self._take(pod, policy, listed=pod["metadata"]["uid"] in since)
            problem = "It cannot be evicted, although neighbors need its memory"
            await self._notices.attempt(step, pod, problem, "BorrowerKept")

    async def _take(self, pod: Object, policy: BorrowerPolicy, *, listed: bool) -> None:
        meta, terms = pod["metadata"], NoticeTerms(NOTICE, KEEP, policy.notice_s)
        step = next_step(pod, terms, self._clock.wall(), due=listed and policy.covers(meta["namespace"]))
        if step is NoticeStep.GIVE_NOTICE:
            message = (
                "Neighbors need the memory that it borrows, which is on the host now. At {end} it is evicted, unless "
                f"it frees memory or there is room. To keep it, set the annotation {KEEP}=true"
            )
            await self._notices.give(pod, terms, "BorrowerNotice", message)
        elif step is NoticeStep.WITHDRAW:
            await self._notices.withdraw(pod, terms)
        elif step is NoticeStep.END:
            await self._notices.evict(pod, "BorrowerEvicted", "Evicted, because neighbors needed its memory")
            log.info("Evicted borrower %s/%s", meta["namespace"], meta["name"])
