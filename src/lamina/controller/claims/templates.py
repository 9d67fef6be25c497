"""Makes the templates of claims that pods name, before these pods are scheduled, and removes those that no pod names.

Kubernetes makes the claim of a pod once its template exists, and the pod waits for its claim. What is in a template
follows from the pod's annotation, which has to hash to the template's name. So an annotation that a tenant writes leads
to a valid claim for GPUs or to nothing, and to nothing where `admission.byClaim` is `never`. A template of that name
with other contents is left alone, and reported. What fails is tried again after ever longer, and one namespace has a
bounded number of tries in a step, so no namespace delays the claims of another.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.controller.context import Context
from lamina.core.pod_status import is_over
from lamina.core.quantities import parse_quantity
from lamina.dialects.by_claim import ENTRY, GENERATED
from lamina.dra.generated import read_generated, template_spec
from lamina.errors import BadInput
from lamina.ports.kube import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    AlreadyExists,
    EventRecorder,
    NotFound,
    Object,
    follow,
)
from lamina.ports.kube.follow import DELETED, SYNCED, identity

log = logging.getLogger(__name__)

EVERY_S = 0.5
SWEEP_S = 60.0
UNUSED_S = 600.0
"""So long a template stays that no pod names. The next pod with the same request uses it."""
MAX_TRIES = 8
"""In one step, for the pods of one namespace."""
MAX_DELAY_S = 60.0
NEVER = "admission.byClaim is never, so this cluster makes no claims for pods; delete the pod, and create it without {}"
LABELS = {"app.kubernetes.io/part-of": "lamina", GENERATED: "true"}


class _Wanted(NamedTuple):
    """A pod that names a template. `waits`: it has no node yet, so its claim may be missing."""

    namespace: str
    pod: str
    template: str
    text: str
    waits: bool


class _Tries(NamedTuple):
    """How often making the template of a pod has failed, and when it may be tried again."""

    failed: int = 0
    again_at: float = float("-inf")


class ClaimTemplates:
    """Those of the cluster. Only a replica that leads (`leading`) writes."""

    def __init__(self, context: Context, events: EventRecorder, leading: Callable[[], bool]) -> None:
        self._context = context
        self._kube = context.kube
        self._events = events
        self._leading = leading
        self._pods: dict[str, _Wanted] = {}
        self._made: set[tuple[str, str]] = set()
        """Templates that exist, as far as this replica knows."""
        self._tries: dict[str, _Tries] = {}
        """By the UID of the pod."""
        self._reported: set[str] = set()
        self._unused_since: dict[str, float] = {}
        self._swept_at = float("-inf")
        self._synced = False

    async def run(self) -> None:
        """Follow the pods with generated claims."""
        async for kind, pod in follow(self._kube, self._context.clock, PODS, labels=GENERATED, trim=_trim):
            if kind == SYNCED:
                self._synced = True
            else:
                self.observe(pod, gone=kind == DELETED)

    def observe(self, pod: Object, *, gone: bool = False) -> None:
        """The pod is as given, or gone."""
        meta, uid = pod["metadata"], pod["metadata"]["uid"]
        names = [each.get("resourceClaimTemplateName") for each in pod["claims"] if each.get("name") == ENTRY]
        if gone or is_over(pod) or not names or not names[0]:
            self._pods.pop(uid, None)
            self._reported.discard(uid)
            self._tries.pop(uid, None)
            return
        self._pods[uid] = _Wanted(meta["namespace"], meta["name"], names[0], pod["text"], not pod["node"])

    async def step(self) -> None:
        """Make what pods wait for, and remove now and then what no pod names. Raises Outside."""
        if not (self._leading() and self._synced):
            return
        for uid, wanted in list(self._due()):
            with self._context.set_aside.around("generated claim", f"{wanted.namespace}/{wanted.pod}"):
                await self._make(uid, wanted)
        if self._context.now() - self._swept_at >= SWEEP_S:
            self._swept_at = self._context.now()
            await self._sweep()

    def _due(self) -> Iterator[tuple[str, _Wanted]]:
        """The pods whose templates are to be tried in this step. Each of them counts as tried."""
        now, tries = self._context.now(), Counter[str]()
        for uid, wanted in self._pods.items():
            before = self._tries.get(uid, _Tries())
            missing = wanted.waits and (wanted.namespace, wanted.template) not in self._made
            if missing and now >= before.again_at and tries[wanted.namespace] < MAX_TRIES:
                tries[wanted.namespace] += 1
                delay = min(MAX_DELAY_S, EVERY_S * 2 ** min(before.failed, 16))
                self._tries[uid] = _Tries(before.failed + 1, now + delay)
                yield uid, wanted

    async def _make(self, uid: str, wanted: _Wanted) -> None:
        if (wanted.namespace, wanted.template) in self._made:
            return
        if self._context.configuration.value.admission.by_claim == "never":
            await self._report(uid, wanted, NEVER.format(GENERATED))
            return
        try:
            spec = template_spec(read_generated(wanted.text, wanted.template))
        except BadInput as problem:
            await self._report(uid, wanted, str(problem))
            return
        meta = {"name": wanted.template, "namespace": wanted.namespace, "labels": dict(LABELS)}
        try:
            await self._kube.create(
                RESOURCE_CLAIM_TEMPLATES, {"metadata": meta, "spec": spec}, namespace=wanted.namespace
            )
            log.info("Made the ResourceClaimTemplate %s/%s", wanted.namespace, wanted.template)
        except AlreadyExists:
            found = await self._kube.get(RESOURCE_CLAIM_TEMPLATES, wanted.template, namespace=wanted.namespace)
            if not _says(found["spec"], spec):
                reason = f"the ResourceClaimTemplate {wanted.template} says something else; delete it and the pod"
                await self._report(uid, wanted, reason)
                return
        self._made.add((wanted.namespace, wanted.template))

    async def _report(self, uid: str, wanted: _Wanted, text: str) -> None:
        if uid not in self._reported:
            self._reported.add(uid)
            about = {"metadata": {"namespace": wanted.namespace, "name": wanted.pod, "uid": uid}}
            await self._events.record(PODS, about, "NoGeneratedClaim", text, warning=True)

    async def _sweep(self) -> None:
        named = {(each.namespace, each.template) for each in self._pods.values()}
        now, unused = self._context.now(), {}
        labels = f"{GENERATED}={LABELS[GENERATED]}"
        templates = (await self._kube.list(RESOURCE_CLAIM_TEMPLATES, labels=labels)).items
        self._made = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in templates}
        for template in templates:
            meta = template["metadata"]
            key = (meta["namespace"], meta["name"])
            if key in named:
                continue
            unused[meta["uid"]] = self._unused_since.get(meta["uid"], now)
            if now - unused[meta["uid"]] >= UNUSED_S:
                self._made.discard(key)
                await self._delete(*key, meta["uid"])
        self._unused_since = unused

    async def _delete(self, namespace: str, name: str, uid: str) -> None:
        try:
            await self._kube.delete(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace, uid=uid)
        except NotFound:
            return
        log.info("Removed the ResourceClaimTemplate %s/%s, which no pod names", namespace, name)


def _trim(pod: Object) -> Object:
    meta = pod["metadata"]
    return {
        "metadata": identity(pod),
        "text": str((meta.get("annotations") or {}).get(GENERATED, "")),
        "claims": (pod.get("spec") or {}).get("resourceClaims") or [],
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "status": {"phase": (pod.get("status") or {}).get("phase")},
    }


def _says(found: Any, wanted: Any) -> bool:
    """Whether an object has all that is wanted. The API server adds defaults, and writes amounts in its own way."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_says(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_says(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted) or (_amount(wanted) is not None and _amount(found) == _amount(wanted))


def _amount(value: Any) -> Any:
    try:
        return parse_quantity(value, where="").value
    except BadInput:
        return None
