"""What the controller tells its admission process about the cluster."""

from lamina.controller.admission.review import Demand, refusal_of
from lamina.controller.context import Context
from lamina.controller.failures import Failures
from lamina.controller.observation.watches import Watches


class ClusterAnswers:
    """Answers from what has been observed. A demand on which this fails unexpectedly is refused."""

    def __init__(self, context: Context, watches: Watches) -> None:
        self._context = context
        self._watches = watches
        self._failures = Failures(context.set_aside)

    def refusal(self, demand: Demand) -> str:
        """Why the cluster does not admit the demand, as a sentence, or nothing."""
        try:
            return self._refusal(demand)
        except Exception as error:
            return self._failures.sentence("admit", error)

    def _refusal(self, demand: Demand) -> str:
        offered = self._context.ledger.offers_native_devices
        return refusal_of(demand, ready=self._watches.synced.is_set(), offered=offered)
