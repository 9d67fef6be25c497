"""`lamina fits`: whether the pods of a manifest would fit now, on which GPUs, or by how much they miss.

Pods are tried one after another on one reading of the cluster, and each takes its place from those after it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from lamina.core.grants import ContainerGrant, Grant
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.dialects.claim_gate import GATE
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput
from lamina.ledger.observed_claims import ObservedClaim
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pods import parse_pod
from lamina.placement import PodPlacement, explain, fit, summary
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.report.fit_groups import GroupTrial, Member
from lamina.report.native_capacity import counted
from lamina.report.pod_templates import PodTemplate
from lamina.report.reasons import node_lines
from lamina.report.remedies import nearest_remedies


class FitAnswer(NamedTuple):
    """What was found of one template: whether all of its pods fit, None where that is not known, and the lines that say
    so."""

    fits: bool | None
    lines: tuple[str, ...]


class FitCheck:
    """Tries pods on a reading of a cluster, which it changes: pods that fit hold their place in it."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._states = {name: cluster.node(name) for name in sorted(cluster.inventories)}
        self._tried = 0
        self._placed: dict[str, str] = {}
        """The node of each pod that fit, by UID."""
        self._claimed: dict[str, list[ObservedClaim]] = {}
        """The claims of these."""

    def check_all(self, templates: list[PodTemplate], needed: Mapping[GroupName, int | str]) -> Iterator[FitAnswer]:
        """Try the templates in turn, those of a pod group together. `needed` is how many members each group needs, or
        why that is not known. Raises BadInput as `check`."""
        groups: dict[GroupName, list[PodTemplate]] = {}
        for template in templates:
            if (name := group_of(template.pod, self._cluster.config)) is not None:
                groups.setdefault(name, []).append(template)
        for template in templates:
            name = group_of(template.pod, self._cluster.config)
            if name is None or needed[name] == 0:
                yield self.check(template)
            elif members := groups.pop(name, None):
                yield self._check_group(name, needed[name], members)

    def check(self, template: PodTemplate) -> FitAnswer:
        """Try the pods of a template until one does not fit. Raises BadInput for pods that admission refuses."""
        request = self._request(template)
        if request is None and not counted(template.pod) and not self._cluster.claims.of(template.pod):
            return FitAnswer(True, (f"{template.title} requests no GPU.",))
        places: Counter[str] = Counter()
        for _ in range(template.number):
            pod = self._next_pod(template)
            if unknown := self._unknown(pod, request):
                who = f"one more pod of {template.title}" if places else template.title
                lines = (*_fitting(template, places), f"Whether {who} fits is not known: {unknown}.")
                return FitAnswer(None, lines)
            place = "" if self._refusal(pod) else self._place(pod, request)
            if not place:
                return FitAnswer(False, (*_fitting(template, places), *self._reasons(template, pod, request, places)))
            places[place] += 1
        return FitAnswer(True, tuple(_fitting(template, places)))

    def _check_group(self, name: GroupName, needed: int | str, templates: list[PodTemplate]) -> FitAnswer:
        """Try the pods of a group, the largest first. They keep their places only if as many fit as are needed."""
        if isinstance(needed, str):
            return FitAnswer(False, (f"{needed}.",))
        plain = [template for template in templates if self._request(template) is None]
        answers = [self.check(template) for template in plain]
        lines = [line for answer in answers for line in answer.lines]
        trial = GroupTrial.of(self._cluster, name, needed - sum(template.number for template in plain))
        pods = [
            Member(parse_pod(self._next_pod(template), self._cluster.config), template)
            for template in templates
            if template not in plain
            for _ in range(template.number)
        ]
        if too_few := trial.too_few(len(pods)):
            return FitAnswer(False, (*lines, f"{too_few}."))
        places: defaultdict[str, Counter[str]] = defaultdict(Counter)
        placed, missing = [], None
        for pod, template in trial.in_order(pods):
            place = "" if self._refusal(pod.obj) else self._place(pod.obj, pod.request)
            if place:
                placed.append(pod.obj)
                places[template.title][place] += 1
            elif missing is None:
                missing = pod, template
        if missing is None:
            lines += [line for template in templates for line in _fitting(template, places[template.title])]
            return FitAnswer(_all_fit(answers), tuple(lines))
        enough = len(placed) >= trial.lacking
        if enough:
            lines += [line for template in templates for line in _fitting(template, places[template.title])]
        else:
            lines.append(f"{trial.too_few_places(len(placed))}.")
        pod, template = missing
        lines += self._reasons(template, pod.obj, pod.request, Counter({"placed": len(placed)}))
        for other in () if enough else placed:
            self._remove(other)
        return FitAnswer(False, tuple(lines))

    def _refusal(self, pod: Object) -> str:
        """Why no node may take the pod, which admission has not filled in yet, as a sentence, or nothing."""
        if not_placed := self._cluster.not_placed(pod):
            return f"the pod {not_placed}"
        return self._cluster.rules.by_both_doors(self._cluster.parse(pod)) or self._over_quota(pod)

    def _over_quota(self, pod: Object) -> str:
        """Which quota the pod or its claims exceed, as a sentence, or nothing."""
        parsed, rules = self._cluster.parse(pod), self._cluster.rules
        over = "" if parsed.request is None else rules.over_quota(parsed, parsed.request)
        return over or self._cluster.claim_quotas.excess(pod, chain.from_iterable(self._claimed.values()))

    def _request(self, template: PodTemplate) -> PodRequest | None:
        try:
            return parse(template.pod, self._cluster.config)
        except BadInput as problem:
            raise BadInput(f"{template.title}: {problem}") from problem

    def _remove(self, pod: Object) -> None:
        """Undo `_place`."""
        uid = pod["metadata"]["uid"]
        node = self._placed.pop(uid)
        self._claimed.pop(uid, None)
        if self._cluster.ledger.grants_of(uid):
            self._cluster.ledger.remove_grant(uid, uid, 0.0)
            self._states[node] = self._cluster.node(node)
        self._cluster.pods[:] = [other for other in self._cluster.pods if other["metadata"]["uid"] != uid]
        if self._cluster.hosts is not None:
            self._cluster.hosts.take(pod, node, -1)

    def _next_pod(self, template: PodTemplate) -> Object:
        self._tried += 1
        meta = {**template.pod["metadata"], "uid": f"tried-{self._tried}"}
        gates = [each for each in template.pod["spec"].get("schedulingGates") or () if each.get("name") != GATE]
        return {**template.pod, "metadata": meta, "spec": {**template.pod["spec"], "schedulingGates": gates}}

    def _place(self, pod: Object, request: PodRequest | None) -> str:
        """Give the pod its place on the node with the best score. Returns the place in words, empty without one."""
        lacking = self._cluster.lacking(pod, request)
        if self._cluster.claims.problem(pod):
            return ""
        certain = self._with_claims(pod)
        native = next((name for name in sorted(lacking) if lacking[name] is None and certain(name)), "")
        bounded = self._cluster.bounded(pod)
        placements = {} if bounded is None else self._placements(bounded, without=lacking)
        granting = sorted(filter(certain, placements))
        if granting and request is not None:
            node = max(granting, key=lambda name: placements[name].score)
            devices = self._take_devices(pod, node)
            return f"{self._grant(pod, node, placements[node].containers, request)}{devices}"
        if native:
            devices = self._take_devices(pod, native)
            self._cluster.pods.append({**pod, "spec": {**pod["spec"], "nodeName": native}})
            self._take_host(pod, native)
            return f"{native}{devices}" if not counted(pod) else f"{native}{devices}, where kubelet chooses the devices"
        return ""

    def _with_claims(self, pod: Object) -> Callable[[str], bool]:
        """Whether a node certainly has room for the claims of the pod."""
        claims = self._cluster.claims.of(pod)
        fits = self._cluster.claims.fits(claims) if claims else {}
        return lambda node: not claims or (node in fits and fits[node].certain and not fits[node].lacks)

    def _take_devices(self, pod: Object, node: str) -> str:
        """Give the claims of the pod their devices. Returns these in words."""
        self._claimed[pod["metadata"]["uid"]] = self._cluster.claim_quotas.claims(pod)
        devices = self._cluster.claims.take(pod, node) if self._cluster.claims.of(pod) else ()
        return f" {', '.join(devices)}" if devices else ""

    def _unknown(self, pod: Object, request: PodRequest | None) -> str:
        """Why it is not known whether the pod fits, or nothing. Where a node certainly has room, or none has, it is."""
        claims = self._cluster.claims
        if not claims.of(pod) or claims.problem(pod):
            return ""
        if claims.unread:
            return claims.unread
        lacking, certain = self._cluster.lacking(pod, request), self._with_claims(pod)
        possible = [node for node in claims.rooms if lacking.get(node) is None]
        if not possible or any(map(certain, possible)):
            return ""
        return f"kube-scheduler finds devices for its claims, by rules that are not evaluated here; {claims.offered}"

    def _placements(self, request: PodRequest, *, without: Collection[str]) -> dict[str, PodPlacement]:
        """Where a grant is possible, by node."""
        return {
            name: placement
            for name, state in self._states.items()
            if name not in without and isinstance(placement := fit(request, state), PodPlacement)
        }

    def _grant(self, pod: Object, node: str, containers: tuple[ContainerGrant, ...], request: PodRequest) -> str:
        meta = pod["metadata"]
        grant = Grant(pod=meta["name"], pod_uid=meta["uid"], node=node, dialect=request.dialect, containers=containers)
        self._cluster.ledger.observe_grant(GrantRecord(meta["uid"], meta["namespace"], meta["name"], grant))
        self._states[node] = self._cluster.node(node)
        self._take_host(pod, node)
        indices = {gpu.uuid: gpu.index for gpu in self._cluster.inventories[node].gpus}
        used = sorted({indices[share.gpu] for container in containers for share in container.shares})
        return f"{node} GPU {', '.join(map(str, used))}"

    def _take_host(self, pod: Object, node: str) -> None:
        self._placed[pod["metadata"]["uid"]] = node
        if self._cluster.hosts is not None:
            self._cluster.hosts.take(pod, node)

    def _reasons(
        self, template: PodTemplate, pod: Object, request: PodRequest | None, places: Counter[str]
    ) -> Iterator[str]:
        """Why one more pod does not fit, and what would have to change."""
        who = f"One more pod of {template.title}" if places else template.title
        if refusal := self._refusal(pod):
            yield f"{who} does not fit: {refusal}."
            if refusal == self._over_quota(pod):
                yield f"  To change that: request less, or raise the quota of namespace {pod['metadata']['namespace']}."
            return
        if problem := self._cluster.claims.problem(pod):
            yield f"{who} does not fit: {problem}."
            return
        request = self._cluster.bounded(pod)
        lacking = self._cluster.lacking(pod, request)
        if request is None:
            misses = [(miss, [node]) for node, miss in lacking.items() if miss is not None]
            names = " and ".join(counted(pod))
            yield f"{who} does not fit now: {summary((), misses) if misses else f'no node offers {names}'}."
        else:
            explanation = explain(request, self._states.values(), lacking)
            yield f"{who} does not fit now: {explanation.summary}."
            yield from node_lines(explanation)
        yield from nearest_remedies(self._cluster, pod, request, self._states)


def _all_fit(answers: Iterable[FitAnswer]) -> bool | None:
    found = {answer.fits for answer in answers}
    return False if False in found else None if None in found else True


def _fitting(template: PodTemplate, places: Counter[str]) -> Iterator[str]:
    placed = sum(places.values())
    if template.number == 1 and placed:
        yield f"{template.title} fits now on {next(iter(places))}."
    elif placed == template.number:
        where = "; ".join(f"{count} on {place}" for place, count in places.items())
        yield f"All {placed} pods of {template.title} fit now: {where or 'there are none'}."
    elif placed:
        where = "; ".join(f"{count} on {place}" for place, count in places.items())
        yield f"{placed} of {template.number} pods of {template.title} fit now: {where}."
