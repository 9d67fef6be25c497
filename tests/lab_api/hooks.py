"""Webhook servers over HTTPS, for tests of admission."""

import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from typing import Any

from aiohttp import web

from lamina.ports.kube import Object
from lamina_lab.api.access import certificates

Answer = Callable[[Object], Any]


class Hook:
    """A webhook that answers what `answer` makes of each request; it keeps the requests."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Object] = []
        self.asked: list[str] = []
        self.authority = certificates.authority("hook-ca")
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/mutate", self._review)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        pair = certificates.server(self.authority)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}/mutate"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _review(self, request: web.Request) -> web.StreamResponse:
        review = json.loads(await request.read())
        self.requests.append(review["request"])
        self.asked.append(request.query.get("who", ""))
        found = self.answer(review["request"])
        if isinstance(found, web.StreamResponse):
            return found
        response = {"uid": review["request"]["uid"], **found}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def config(self, **more: Any) -> Object:
        """One webhook for the creation of pods; `more` overrides."""
        bundle = base64.b64encode(self.authority.certificate).decode()
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        return {
            "name": "pods.example.com",
            "clientConfig": {"url": self.url, "caBundle": bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }


def allowed(*operations: Object, **more: Any) -> Object:
    if not operations:
        return {"allowed": True, **more}
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch, **more}


def denied(message: str, **status: Any) -> Object:
    return {"allowed": False, "status": {"message": message, **status}}
