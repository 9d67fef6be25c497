"""What holds for a pod on every node: whether Lamina may place it at all, and what quotas leave to it.

Filter, the choice of GPUs, binding and all views ask here, so that they agree.
"""

from typing import NamedTuple

from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import PodRequest
from lamina.dialects import explain_missing_defaults
from lamina.ledger.ledger import Ledger
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ledger.pods import ParsedPod
from lamina.ledger.quotas import ResourceQuotas, excess


class PodRules(NamedTuple):
    """Reads and changes nothing."""

    ledger: Ledger
    quotas: ResourceQuotas
    claims: ObservedClaims | None = None
    """Those of the cluster, where agents serve claims."""

    def room(self, pod: ParsedPod) -> QuotaRoom | None:
        """What the quotas of its namespace leave to the pod; None where none limits GPUs."""
        totals = self.ledger.totals
        return self.quotas.room(
            pod.namespace, pod.config, lambda: totals.taken_in_namespace(pod.namespace, without=pod.uid)
        )

    def bounded(self, pod: ParsedPod, request: PodRequest) -> PodRequest:
        """The request within what quotas leave: on some GPUs it may come to more."""
        return request.within(self.room(pod))

    def refused_everywhere(self, pod: ParsedPod) -> str:
        """Why no node may take the pod, whatever nodes there are, as a sentence, or nothing."""
        if pod.not_placed:
            return f"the pod {pod.not_placed}"
        if pod.problem or pod.request is None:
            return pod.problem
        return self.without_grant(pod, pod.request) or self.over_quota(pod, pod.request)

    def by_both_doors(self, pod: ParsedPod) -> str:
        """Why a container cannot have GPUs by a claim and by a grant, as a sentence, or nothing.

        In a pod that admission has not seen yet, a container that requests an amount alone has no ticket.
        """
        asking = {each.container for each in pod.request.containers} if pod.request else set()
        return self.claims.refusal(pod.obj, pod.ticket_holders | asking) if self.claims else ""

    def without_grant(self, pod: ParsedPod, request: PodRequest) -> str:
        """Why nothing can be granted to the pod as it is, as a sentence, or nothing."""
        if request.only_native_reason and not self.ledger.offers_native_devices(request.native_devices):
            return request.only_native_reason
        return self.by_both_doors(pod) or explain_missing_defaults(pod.obj, request, pod.config)

    def over_quota(self, pod: ParsedPod, request: PodRequest) -> str:
        """Which quota the pod exceeds on any GPU, as a sentence, or nothing. Kubernetes counts native devices."""
        if request.native_devices and self.ledger.offers_native_devices(request.native_devices):
            return ""
        return excess([self.bounded(pod, request)])

    def uncounted_devices(self, pod: ParsedPod, request: PodRequest) -> str:
        """Why a quota of its namespace forbids the pod devices without a grant, as a sentence, or nothing."""
        return self.quotas.uncounted(pod.namespace, request.native_devices, pod.config)
