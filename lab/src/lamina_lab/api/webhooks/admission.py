"""Admission webhooks: which ones apply to a write, calling them, and handling their answers.

Configurations are read from the store at each write, so that a change applies from the next write on.
"""

import base64
import json
import os
import ssl
import uuid
from collections.abc import Iterator
from typing import Any

import aiohttp
import jsonpatch
import msgspec
from yarl import URL

from lamina.ports.kube import Object
from lamina_lab.api.patching.patches import json_patched
from lamina_lab.api.schema.resources import ApiResource, Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.api.storage.verbs import AdmissionAttributes, Call
from lamina_lab.api.webhooks import match_conditions
from lamina_lab.kubernetes import selectors
from lamina_lab.kubernetes.errors import ApiError, internal

_GROUP = "admissionregistration.k8s.io"


class _WebhookFailed(Exception):
    """A webhook that could not be called, or whose answer is invalid."""


class Webhooks:
    """Calls webhooks by URL, one after the other in order of their names, as mutating ones require."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._mutating = catalog.named(f"mutatingwebhookconfigurations.{_GROUP}")
        self._validating = catalog.named(f"validatingwebhookconfigurations.{_GROUP}")
        self._namespaces = catalog.named("namespaces")
        self._session: aiohttp.ClientSession | None = None
        self._trust: dict[str, ssl.SSLContext] = {}

    async def mutate(self, review: AdmissionAttributes, call: Call) -> Object:
        """The object after all mutating webhooks. Raises ApiError for a refusal."""
        obj = review.new or {}
        for hook in self._hooks(self._mutating):
            current = AdmissionAttributes(review.operation, review.resource, review.subresource, obj, review.old)
            answer = await self._call_webhook(hook, current, call)
            if answer is not None and answer.get("patch"):
                obj = self._patched(hook, obj, answer)
        return obj

    async def validate(self, review: AdmissionAttributes, call: Call) -> None:
        """Raises ApiError for a refusal."""
        if review.operation == "DELETE":
            for hook in self._hooks(self._mutating):
                await self._call_webhook(hook, review, call)
        for hook in self._hooks(self._validating):
            await self._call_webhook(hook, review, call)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _hooks(self, resource: ApiResource) -> Iterator[Object]:
        for version in self._store.list(resource):
            yield from version.obj.get("webhooks") or []

    async def _call_webhook(self, hook: Object, review: AdmissionAttributes, call: Call) -> Object | None:
        """The answer of a webhook; None if it does not apply to the write or its failure is ignored."""
        if not _concerns(hook, review, self._namespace_labels(review)):
            return None
        request = _request(review, call)
        try:
            if not _conditions_hold(hook, review, request):
                return None
            answer = await self._ask(hook, request)
        except match_conditions.ConditionError as error:
            _failed(hook, f"failed to evaluate match conditions: {error}")
            return None
        except _WebhookFailed as error:
            _failed(hook, f"failed to call webhook: {error}")
            return None
        call.warnings.extend(str(warning) for warning in answer.get("warnings") or [])
        if answer.get("allowed") is not True:
            raise _denied(hook, answer.get("status") or {})
        return answer

    def _namespace_labels(self, review: AdmissionAttributes) -> Object | None:
        """Labels of a write's namespace; None outside of namespaces."""
        obj = review.new or review.old or {}
        if review.resource.storage == "namespaces":
            labels: Object = obj["metadata"].get("labels") or {}
            return labels
        if not review.resource.namespaced:
            return None
        found = self._store.find(self._namespaces, "", obj["metadata"].get("namespace", ""))
        return (found.meta.get("labels") or {}) if found else {}

    async def _ask(self, hook: Object, request: Object) -> Object:
        config = hook["clientConfig"]
        seconds = hook.get("timeoutSeconds", 10)
        url = URL(config["url"]).update_query(timeout=f"{seconds}s")
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(
                url,
                data=msgspec.json.encode(body),
                headers={"Content-Type": "application/json"},
                ssl=self._trusting(config.get("caBundle", "")),
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                text = await response.read()
                if response.status != 200:
                    raise _WebhookFailed(f'Post "{url}": the answer has status {response.status}')
        except TimeoutError as error:
            raise _WebhookFailed(f'Post "{url}": context deadline exceeded') from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise _WebhookFailed(f'Post "{url}": tls: {error.certificate_error}') from error
        except aiohttp.ClientConnectorError as error:
            reason = os.strerror(error.os_error.errno).lower() if error.os_error.errno else str(error.os_error)
            raise _WebhookFailed(f'Post "{url}": dial tcp {error.host}:{error.port}: connect: {reason}') from error
        except aiohttp.ClientError as error:
            raise _WebhookFailed(f'Post "{url}": {error}') from error
        return _response(text, request["uid"])

    def _trusting(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._trust:
            try:
                pem = base64.b64decode(bundle).decode() if bundle else None
                self._trust[bundle] = ssl.create_default_context(cadata=pem)
            except (ValueError, ssl.SSLError) as error:
                raise _WebhookFailed(f"the caBundle cannot be read: {error}") from error
        return self._trust[bundle]

    def _patched(self, hook: Object, obj: Object, answer: Object) -> Object:
        try:
            if answer.get("patchType") != "JSONPatch":
                raise ValueError(f"patchType must be JSONPatch, found {answer.get('patchType')!r}")
            return json_patched(obj, json.loads(base64.b64decode(answer["patch"])))
        except (ValueError, TypeError, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            _failed(hook, f"the patch cannot be applied: {error}")
            return obj


def _response(text: bytes, uid: str) -> Object:
    try:
        review: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _WebhookFailed(f"the answer is no JSON: {error}") from error
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict) or review.get("apiVersion") != "admission.k8s.io/v1":
        raise _WebhookFailed("the answer is no AdmissionReview of admission.k8s.io/v1 with a response")
    if response.get("uid") != uid:
        raise _WebhookFailed(f"expected response.uid={uid!r}, got {response.get('uid')!r}")
    return response


def _failed(hook: Object, why: str) -> None:
    """A webhook that failed: the write fails, unless the failure policy is Ignore."""
    if hook.get("failurePolicy", "Fail") != "Ignore":
        raise internal(f'failed calling webhook "{hook["name"]}": {why}')


def _denied(hook: Object, status: Object) -> ApiError:
    denied = f'admission webhook "{hook["name"]}" denied the request'
    message, reason = status.get("message"), status.get("reason") or ""
    text = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    return ApiError(max(400, int(status.get("code") or 0)), reason, text, status.get("details"))


def _concerns(hook: Object, review: AdmissionAttributes, namespace_labels: Object | None) -> bool:
    if not any(_rule_matches(rule, review) for rule in hook.get("rules") or []):
        return False
    if namespace_labels is not None and not selectors.matches(hook.get("namespaceSelector") or {}, namespace_labels):
        return False
    selector = hook.get("objectSelector") or {}
    states = [state for state in (review.new, review.old) if state is not None]
    return any(selectors.matches(selector, state["metadata"].get("labels")) for state in states)


def _rule_matches(rule: Object, review: AdmissionAttributes) -> bool:
    resource = review.resource
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        _listed(review.operation, rule.get("operations"))
        and _listed(resource.group, rule.get("apiGroups"))
        and _listed(resource.version, rule.get("apiVersions"))
        and rule.get("scope", "*") in ("*", scope)
        and any(_names(pattern, resource.plural, review.subresource) for pattern in rule.get("resources") or [])
    )


def _listed(value: str, among: list[str] | None) -> bool:
    return value in (among or ()) or "*" in (among or ())


def _names(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, sub = pattern.partition("/")
    return resource in ("*", plural) and (sub in ("*", subresource) if sub else not subresource)


def _request(review: AdmissionAttributes, call: Call) -> Object:
    resource, obj = review.resource, review.new or review.old or {}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: Object = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": place,
        "requestKind": kind,
        "requestResource": place,
        "name": obj["metadata"].get("name", ""),
        "operation": review.operation,
        "userInfo": {"username": call.user, "groups": list(call.groups)},
        "object": review.new,
        "oldObject": review.old,
        "dryRun": call.dry_run,
        "options": None,
    }
    if review.subresource:
        request["subResource"] = request["requestSubResource"] = review.subresource
    if resource.namespaced:
        request["namespace"] = obj["metadata"].get("namespace", "")
    return request


def _conditions_hold(hook: Object, review: AdmissionAttributes, request: Object) -> bool:
    variables = {"object": review.new, "oldObject": review.old, "request": request}
    return all(
        match_conditions.holds(condition["expression"], variables) for condition in hook.get("matchConditions") or []
    )
