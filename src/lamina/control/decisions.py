"""The extender's answers to filter and prioritise, from the ledger and the pod as it is written.

The pod is parsed again each time: annotations are hints for people, never authority.
"""

import contextlib
from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.packing import Packing
from lamina.control.quotas import Amounts, Quotas, asked, excess
from lamina.dialects import parse, unseen_by_admission
from lamina.errors import BadInput
from lamina.model.host_size import asked_by
from lamina.model.requests import PodRequest
from lamina.placement import FITS, NO_NODE, Misfit, Miss, Placement, Survey, fit, miss_of, node_score, summary

Longs = NDArray[np.int64]
HIGHEST_SCORE = 10
"""kube-scheduler's MaxExtenderPriority."""
_APART = NO_NODE - 1
"""Stands for a node that is asked apart from the others."""
_NO_GPUS = "no GPU is offered on this node"


class Filtered(Struct, kw_only=True):
    """Nodes that fit, and why others do not: `failed` may fit once other pods leave, `unresolvable` never.

    `error` is set instead where the pod fits nowhere because of itself. `summary` is for people, in one text.
    """

    fitting: list[str]
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    error: str = ""
    summary: str = ""


class Decisions:
    """Reads the ledger and changes nothing."""

    def __init__(self, capacity: Capacity, quotas: Quotas, configuration: Configuration) -> None:
        self._capacity = capacity
        self._quotas = quotas
        self._configuration = configuration
        self.packing = Packing(capacity)

    def filter(self, pod: Mapping[str, Any], nodes: list[str]) -> Filtered:
        """Which of `nodes` can take the pod; all of them where it asks no GPU."""
        try:
            request = parse(pod, self._configuration.value)
        except BadInput as problem:
            return Filtered(fitting=[], error=str(problem), summary=str(problem))
        if request is None:
            return Filtered(fitting=nodes)
        refusal = self.refusal(pod, request) or self.over_quota(pod, asked(request))
        if refusal:
            return Filtered(fitting=[], error=refusal, summary=refusal)
        if request.plain and self._capacity.ledger.offered_plainly(request.plain):
            return self._with_plain(pod, request, nodes)
        return self._surveyed(pod, request, nodes)

    def plainly(self, request: PodRequest, node: str) -> bool:
        """Whether the pod only counts what the node gives out without grants: kube-scheduler and kubelet see to it."""
        inventory = self._capacity.ledger.inventory(node)
        return inventory is not None and inventory.offers_plainly(request.plain)

    def _with_plain(self, pod: Mapping[str, Any], request: PodRequest, nodes: list[str]) -> Filtered:
        """Nodes that give out without grants what the pod counts all fit: kube-scheduler has counted before."""
        plain = [name for name in nodes if self.plainly(request, name)]
        others = [name for name in nodes if name not in set(plain)]
        if request.only_plain:
            reason = request.only_plain
            return Filtered(fitting=plain, unresolvable=dict.fromkeys(others, reason), summary="" if plain else reason)
        filtered = self._surveyed(pod, request, others)
        if plain:
            filtered.fitting += plain
            filtered.summary = ""
        return filtered

    def _surveyed(self, pod: Mapping[str, Any], request: PodRequest, nodes: list[str]) -> Filtered:
        survey = self._capacity.survey(request)
        verdicts = survey.verdicts_on(self._capacity.table.rows_of(nodes))
        own = {name: answer for name, answer in self._own(pod, request).items() if name in nodes}
        for name in own:
            verdicts[nodes.index(name)] = _APART
        fits = verdicts == FITS
        result = Filtered(fitting=list(compress(nodes, fits.tolist())), failed={}, unresolvable={})
        missed = _missed(survey, nodes, verdicts)
        result.unresolvable.update(dict.fromkeys(compress(nodes, (verdicts == NO_NODE).tolist()), _NO_GPUS))
        for name, answer in own.items():
            if isinstance(answer, Placement):
                result.fitting.append(name)
            else:
                missed.append((miss_of(answer), [name]))
        for miss, names in missed:
            (result.unresolvable if miss.lasting else result.failed).update(dict.fromkeys(names, miss.reason))
        if not result.fitting:
            result.summary = self._over_all(survey, nodes, missed)
        return result

    def _over_all(self, survey: Survey, asked: list[str], missed: list[tuple[Miss, list[str]]]) -> str:
        """The text for people about all nodes of the cluster, as `lamina why` has it; the scheduler asked of some."""
        table = self._capacity.table
        others = sorted(table.rows.keys() - set(asked))
        verdicts = survey.verdicts_on(table.rows_of(others))
        if room := int(np.count_nonzero(verdicts == FITS)):
            return f"{summary([], missed)}; {room} more would fit, but the scheduler did not offer them"
        return summary([], [*missed, *_missed(survey, others, verdicts)])

    async def prepare(self, pod: Mapping[str, Any]) -> None:
        """Do beside the event loop what `scores` would take long for; it needs no such call."""
        with contextlib.suppress(BadInput):
            request = parse(pod, self._configuration.value)
            if request is not None:
                await self.packing.prepare(request, asked_by(pod))

    def scores(self, pod: Mapping[str, Any], nodes: list[str]) -> dict[str, int]:
        """How well each node suits the pod among these nodes: 0, and HIGHEST_SCORE for the best alone.

        Stretched from the worst to the best, because one pod is a small part of a node: in tenths of what is taken,
        nearly all nodes would be equal, and neither policy would be seen.
        """
        try:
            request = parse(pod, self._configuration.value)
        except BadInput:
            request = None
        table = self._capacity.table
        if request is None or not table.rows:  # the last inventory may go between filter and this question
            return dict.fromkeys(nodes, 0)
        rows = table.rows_of(nodes)
        fits = self._capacity.survey(request).verdicts_on(rows) == FITS
        packed = self.packing.worth(request, asked_by(pod))
        by_row = node_score(request.node_policy, table.usage) if packed is None else packed
        worth = np.where(fits, by_row[rows], 0.0)
        for name, answer in self._own(pod, request).items():
            if name in nodes:
                place = nodes.index(name)
                fits[place] = isinstance(answer, Placement)
                if isinstance(answer, Placement):
                    worth[place] = answer.score if packed is None else packed[rows[place]]
        scores = _stretched(worth, fits)
        if packed is not None:
            scores = _first_alone(scores, worth, fits, nodes)
        return dict(zip(nodes, scores.tolist(), strict=True))

    def _own(self, pod: Mapping[str, Any], request: PodRequest) -> dict[str, Placement | Misfit]:
        """The answers of the nodes on which the pod holds something already, without what it holds."""
        answers = {name: self.place(pod, request, name) for name in self._capacity.ledger.nodes_of(_uid(pod))}
        return {name: answer for name, answer in answers.items() if answer is not None}

    def place(self, pod: Mapping[str, Any], request: PodRequest, node: str) -> Placement | Misfit | None:
        """The shares that the pod would get on the node now; None where the node offers no GPUs."""
        state = self._capacity.state(node, without=_uid(pod))
        if state is None:
            return None
        return fit(request, state, self.packing.gpus(request, asked_by(pod), node))

    def refusal(self, pod: Mapping[str, Any], request: PodRequest) -> str:
        """The sentence that says why no node may take the pod as it is, or nothing."""
        if request.only_plain and not self._capacity.ledger.offered_plainly(request.plain):
            return request.only_plain
        return unseen_by_admission(pod, request, self._configuration.value)

    def over_quota(self, pod: Mapping[str, Any], amounts: Amounts, *, who: str = "the pod") -> str:
        """The sentence that says which quota of its namespace the pod exceeds with these amounts, or nothing.

        `who` asks for the amounts, where it is more than the pod.
        """
        config = self._configuration.value
        namespace = pod["metadata"].get("namespace", "")
        ledger = self._capacity.ledger
        return excess(
            self._quotas.of(namespace, config),
            lambda: ledger.taken_in(namespace, without=_uid(pod)),
            amounts,
            config,
            who=who,
        )


def _missed(survey: Survey, nodes: list[str], verdicts: NDArray[np.int32]) -> list[tuple[Miss, list[str]]]:
    """The nodes of each miss."""
    places = np.flatnonzero(verdicts > FITS)
    groups: dict[int, list[str]] = {}
    for place, number in zip(places.tolist(), verdicts[places].tolist(), strict=True):
        groups.setdefault(number, []).append(nodes[place])
    return [(survey.misses[number], names) for number, names in groups.items()]


def _stretched(worth: NDArray[np.float64], fits: NDArray[np.bool_]) -> Longs:
    low, high = worth.min(where=fits, initial=np.inf), worth.max(where=fits, initial=-np.inf)
    if low >= high:
        return np.zeros(len(worth), np.int64)
    return np.where(fits, HIGHEST_SCORE * (worth - low) / (high - low), 0.0).astype(np.int64)


def _first_alone(scores: Longs, worth: NDArray[np.float64], fits: NDArray[np.bool_], nodes: list[str]) -> Longs:
    """The scores with HIGHEST_SCORE for one node alone: of equally good ones always the same, the first by name.

    Packing fills nodes one after the other in a fixed order; among equal scores the scheduler would draw lots.
    """
    if np.count_nonzero(fits) > 1:
        scores = np.minimum(scores, HIGHEST_SCORE - 1)
        ties = np.flatnonzero(fits & (worth == worth.max(where=fits, initial=-np.inf))).tolist()
        scores[min(ties, key=nodes.__getitem__)] = HIGHEST_SCORE
    return scores


def _uid(pod: Mapping[str, Any]) -> str:
    return str((pod.get("metadata") or {}).get("uid") or "")
