"""The extender's answers to filter and prioritize, computed from the ledger and the request of the pod."""

from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.config_source.live import LiveConfiguration
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.packing.policy import PackingPolicy
from lamina.controller.scheduling.scores import HIGHEST_SCORE, NodeScores, stretched, with_single_best
from lamina.core.grants import ContainerGrant
from lamina.core.policies import PACKING
from lamina.core.requests import PodRequest
from lamina.ledger.ledger import DoesNotFit
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pods import ParsedPod
from lamina.ledger.quotas import ResourceQuotas
from lamina.placement import (
    FITS,
    NO_NODE,
    Cause,
    Misfit,
    Miss,
    PodPlacement,
    Survey,
    counted,
    fit,
    miss_of,
    node_score,
    summary,
)

_NOT_SURVEYED = NO_NODE - 1
"""Stands for a node that is not judged by the survey, because the pod holds something there already."""
_NO_GPUS = "no GPU is offered on this node"


class FilterResult(Struct, kw_only=True):
    """Nodes that fit, and why others do not: `failed` may fit after other pods leave, `unresolvable` never.

    `error` is set instead where the pod itself fits nowhere. `summary` is one text about all nodes, for people;
    `cause` is one word about the nearest node, for metrics.
    """

    fitting: list[str]
    """Not to be changed: it may be the list that was asked about."""
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    error: str = ""
    summary: str = ""
    cause: str = "other"


class Scheduler:
    """Reads the ledger and changes nothing."""

    def __init__(self, cluster_state: ClusterState, quotas: ResourceQuotas, configuration: LiveConfiguration) -> None:
        self._cluster_state = cluster_state
        self._configuration = configuration
        self.rules = PodRules(cluster_state.ledger, quotas, cluster_state.claims)
        self.packing = PackingPolicy(cluster_state)

    def filter(self, pod: ParsedPod, nodes: list[str]) -> FilterResult:
        """Which of `nodes` can take the pod; all of them where it requests no GPU."""
        if refusal := self.rules.refused_everywhere(pod):
            return FilterResult(fitting=[], error=refusal, summary=refusal, cause="refused")
        request = pod.request
        if request is None:
            return FilterResult(fitting=nodes)
        if request.native_devices and self._cluster_state.ledger.offers_native_devices(request.native_devices):
            return self._filter_with_native_devices(pod, request, nodes)
        return self._survey(pod, request, nodes)

    def bounded(self, pod: ParsedPod, request: PodRequest) -> PodRequest:
        """The request within what quotas leave to the pod. It stays as it is where no GPU could exceed that, so that
        what is known of equal requests holds."""
        room = self.rules.room(pod)
        return request if room is None or room.takes(*self._most(request)) else request.within(room)

    def uses_native_devices(self, request: PodRequest, node: str) -> bool:
        """Whether the node offers without grants all that the pod requests: kube-scheduler and kubelet count it."""
        inventory = self._cluster_state.ledger.inventory(node)
        return inventory is not None and inventory.offers_native_devices(request.native_devices)

    async def warm_up(self, pod: ParsedPod) -> None:
        """Compute outside the event loop what would take `scores` long. Calling it is optional."""
        if pod.request is not None:
            await self.packing.warm_up(pod.request, pod.host_size)

    def scores(self, pod: ParsedPod, nodes: list[str]) -> NodeScores:
        """How well each of these nodes suits the pod."""
        request, table = pod.request, self._cluster_state.table
        if request is None or not table.rows:  # the last inventory may disappear between filter and prioritize
            return NodeScores.zero(nodes)
        rows = table.rows_of(nodes)
        fits = self._cluster_state.survey(self.bounded(pod, request)).verdicts_on(rows) == FITS
        packed = self.packing.node_values(request, pod.host_size)
        by_row = node_score(request.node_policy, table.usage) if packed is None else packed
        values = np.where(fits, by_row[rows], 0.0)
        for name, placement in self._place_where_held(pod, request).items():
            if name in nodes:
                position = nodes.index(name)
                fits[position] = isinstance(placement, PodPlacement)
                if isinstance(placement, PodPlacement):
                    values[position] = placement.score if packed is None else packed[rows[position]]
        return NodeScores(nodes, with_single_best(stretched(values, fits), values, fits, nodes))

    def scores_without_gpus(self, pod: ParsedPod, nodes: list[str]) -> NodeScores:
        """How well these nodes suit a pod that requests no GPU; of no node where Lamina has no preference.

        Nodes without GPUs come first. Else, CPU is taken where pods with GPUs will miss it least.
        """
        if self._configuration.value.placement.node_policy != PACKING or not self.packing.learned:
            return NodeScores.zero([])
        rows = self._cluster_state.table.rows_of(nodes)
        if (without := rows < 0).any():
            return NodeScores(nodes, np.where(without, HIGHEST_SCORE, 0))
        by_row = self.packing.node_values(None, pod.host_size)
        if by_row is None:
            return NodeScores.zero([])
        values, fits = by_row[rows], np.ones(len(nodes), np.bool_)
        return NodeScores(nodes, with_single_best(stretched(values, fits), values, fits, nodes))

    def place(self, pod: ParsedPod, request: PodRequest, node: str) -> PodPlacement | Misfit | None:
        """The shares that the pod would get on the node now; None where the node offers no GPUs."""
        state = self._cluster_state.state(node, without=pod.uid)
        if state is None:
            return None
        return fit(self.bounded(pod, request), state, self.packing.best_gpus(request, pod.host_size, node))

    def check_holdings(self, pod: ParsedPod, node: str, containers: Iterable[ContainerGrant]) -> None:
        """Raises DoesNotFit where these shares of the node, which the pod holds, exceed what others or quotas leave."""
        self._cluster_state.ledger.verify_holdings(pod.uid, node)
        self.check_quotas(pod, containers)

    def check_quotas(self, pod: ParsedPod, containers: Iterable[ContainerGrant]) -> None:
        """Raises DoesNotFit where these shares are more than quotas leave to the pod."""
        room = self.rules.room(pod)
        if room is not None and (excess := room.excess(*counted(containers))):
            raise DoesNotFit(excess)

    def _filter_with_native_devices(self, pod: ParsedPod, request: PodRequest, nodes: list[str]) -> FilterResult:
        """Nodes that offer the pod's devices without grants all fit: kube-scheduler has counted the devices itself."""
        native = [name for name in nodes if self.uses_native_devices(request, name)]
        others = [name for name in nodes if name not in set(native)]
        if native and (reason := self.rules.uncounted_devices(pod, request)):
            return self._without_native_devices(pod, request, native, others, reason)
        if request.only_native_reason:
            reason = request.only_native_reason
            return FilterResult(
                fitting=native, unresolvable=dict.fromkeys(others, reason), summary="" if native else reason
            )
        result = self._survey(pod, request, others)
        if native:
            result.fitting = [*result.fitting, *native]
            result.summary = ""
        return result

    def _without_native_devices(
        self, pod: ParsedPod, request: PodRequest, native: list[str], others: list[str], reason: str
    ) -> FilterResult:
        """Nodes that would hand out devices without a grant do not fit, for this reason."""
        if request.only_native_reason:
            result = FilterResult(fitting=[], unresolvable=dict.fromkeys(others, request.only_native_reason))
        else:
            result = self._survey(pod, request, others)
        result.unresolvable |= dict.fromkeys(native, reason)
        if not result.fitting:
            result.summary = f"{result.summary}; {reason}" if result.summary and others else reason
        return result

    def _survey(self, pod: ParsedPod, request: PodRequest, nodes: list[str]) -> FilterResult:
        survey = self._cluster_state.survey(self.bounded(pod, request))
        rows = self._cluster_state.table.rows_of(nodes)
        verdicts = survey.verdicts_on(rows)
        placements = self._place_where_held(pod, request)
        held = {name: placement for name, placement in placements.items() if name in nodes}
        for name in held:
            verdicts[nodes.index(name)] = _NOT_SURVEYED
        fits = verdicts == FITS
        fitting = self._cluster_state.table.choose(nodes, rows, fits)
        result = FilterResult(fitting=fitting, failed={}, unresolvable={})
        misses = _nodes_by_miss(survey, nodes, verdicts)
        if (without := verdicts == NO_NODE).any():
            result.unresolvable.update(dict.fromkeys(compress(nodes, without.tolist()), _NO_GPUS))
        for name, placement in held.items():
            if isinstance(placement, PodPlacement):
                result.fitting = [*result.fitting, name]
            else:
                misses.append((miss_of(placement), [name]))
        for miss, names in misses:
            (result.unresolvable if miss.lasting else result.failed).update(dict.fromkeys(names, miss.reason))
        if not result.fitting:
            result.summary = self._summarize(survey, nodes, misses)
            nearest = max((miss for miss, _ in misses), key=lambda miss: miss.nearness, default=None)
            result.cause = (nearest.cause if nearest else Cause.NO_GPU).name.lower()
        return result

    def _summarize(self, survey: Survey, offered: Sequence[str], misses: list[tuple[Miss, list[str]]]) -> str:
        """The text for people about all nodes, as `lamina why` prints it. kube-scheduler offered only some of them."""
        table = self._cluster_state.table
        others = sorted(table.rows.keys() - set(offered))
        verdicts = survey.verdicts_on(table.rows_of(others))
        if fitting := int(np.count_nonzero(verdicts == FITS)):
            return f"{summary([], misses)}; {fitting} more would fit, but the scheduler did not offer them"
        return summary([], [*misses, *_nodes_by_miss(survey, others, verdicts)])

    def _most(self, request: PodRequest) -> tuple[int, int]:
        """The MiB and percent to which the request comes at most, on any GPUs. An instance may have a whole GPU."""
        largest, partitioned = self._cluster_state.table.largest_mib, self._cluster_state.table.partitioned
        memory = cores = 0
        for each in request.containers:
            memory += each.count * (largest if partitioned else each.memory_on(largest))
            cores += each.count * (max(100, each.cores) if partitioned else each.cores)
        return memory, cores

    def _place_where_held(self, pod: ParsedPod, request: PodRequest) -> dict[str, PodPlacement | Misfit]:
        """Placements on the nodes where the pod holds something already, as if it held nothing."""
        nodes = self._cluster_state.ledger.totals.nodes_of(pod.uid)
        placements = {name: self.place(pod, request, name) for name in nodes}
        return {name: placement for name, placement in placements.items() if placement is not None}


def _nodes_by_miss(survey: Survey, nodes: Sequence[str], verdicts: NDArray[np.int32]) -> list[tuple[Miss, list[str]]]:
    positions = np.flatnonzero(verdicts > FITS)
    groups: dict[int, list[str]] = {}
    for position, number in zip(positions.tolist(), verdicts[positions].tolist(), strict=True):
        groups.setdefault(number, []).append(nodes[position])
    return [(survey.misses[number], names) for number, names in groups.items()]
