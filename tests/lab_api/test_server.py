"""The HTTP surface itself: who may ask, what is answered to odd questions, and how the server starts and ends."""

import asyncio
import json
import socket
import ssl
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from lamina.errors import BadInput
from lamina.ports.kube import Object
from lamina_lab.api.server import ApiServer, serve
from tests.lab_api.servers import FakeKubelets

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = await serve(FakeKubelets())
    yield made
    await made.close()


class Http:
    """Requests with the lab's token and trust."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self._server = server
        self.session = session
        self.trust = ssl.create_default_context(cadata=server.authority.certificate.decode())

    async def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        own = {"Authorization": f"Bearer {self._server.token}", **(headers or {})}
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        own.setdefault("Content-Type", "application/json")
        async with self.session.request(
            method, self._server.url + path, data=data, headers=own, ssl=self.trust
        ) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    async with aiohttp.ClientSession() as session:
        yield Http(server, session)


def pod(name: str, **labels: str) -> Object:
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "m", "image": "i"}]}}


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "Basic abc"])
async def test_only_the_token_opens_the_api(http: Http, authorization: str) -> None:
    code, status = await http("GET", PODS, headers={"Authorization": authorization})
    assert (code, status["kind"], status["reason"]) == (401, "Status", "Unauthorized")
    for path in ("/healthz", "/livez", "/readyz", "/readyz/etcd"):
        assert await http("GET", path, headers={"Authorization": authorization}) == (200, "ok")


async def test_the_certificate_is_the_labs_own(server: ApiServer, http: Http) -> None:
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await http.session.get(server.url + "/healthz")


@pytest.mark.parametrize(
    ("method", "path", "code", "message"),
    [
        ("GET", "/nope", 404, "could not find the requested resource"),
        ("GET", "/api/v2", 404, "could not find the requested resource"),
        ("GET", "/apis/nope.io", 404, "could not find the requested resource"),
        ("GET", "/apis/apps/v2/deployments", 404, "could not find the requested resource"),
        ("GET", "/api/v1/pods/x", 404, "could not find the requested resource"),
        ("GET", "/api/v1/namespaces/default/nodes", 404, "could not find the requested resource"),
        ("GET", PODS + "/x", 404, 'pods "x" not found'),
        ("GET", PODS + "/x/nope", 404, "could not find the requested resource"),
        ("GET", PODS + "?labelSelector=a+b", 400, "unable to parse requirement"),
        ("GET", PODS + "?watch=true&resourceVersion=x", 200, ""),
        ("POST", PODS + "/x", 405, "create is not supported"),
        ("PUT", PODS, 405, "put is not supported"),
        ("PATCH", PODS, 405, "patch is not supported"),
        ("POST", "/api/v1/pods", 400, "an empty namespace may not be set during creation"),
        ("POST", PODS + "?dryRun=Some", 400, 'dryRun: Unsupported value: "Some"'),
        ("POST", PODS + "?fieldValidation=Some", 400, "fieldValidation: Unsupported value"),
        ("DELETE", PODS + "/x?propagationPolicy=Sideways", 400, "propagationPolicy: Unsupported value"),
        ("DELETE", PODS + "/x?gracePeriodSeconds=soon", 400, "gracePeriodSeconds must be a whole number"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, "get is not supported"),
    ],
)
async def test_odd_questions_get_a_status(http: Http, method: str, path: str, code: int, message: str) -> None:
    found, status = await http(method, path, pod("x") if method in ("POST", "PUT") else None)
    assert found == code
    if code != 200:
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code)
        assert message in status["message"]


@pytest.mark.parametrize(
    ("body", "media", "code"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"", "application/json", 400),
        (b"x", "application/cbor", 415),
        (b"k8s\0\xff\xff", "application/vnd.kubernetes.protobuf", 400),
        (b"nope", "application/vnd.kubernetes.protobuf", 400),
        (b"kind: Pod", "application/yaml", 400),
    ],
)
async def test_bodies_that_cannot_be_read(http: Http, body: bytes, media: str, code: int) -> None:
    assert (await http("POST", PODS, body, {"Content-Type": media}))[0] == code
    assert (await http("GET", PODS))[1]["items"] == []


async def test_unknown_fields_are_refused_warned_of_or_dropped(server: ApiServer, http: Http) -> None:
    body = pod("x")
    body["spec"]["containers"][0]["imagee"] = "i"
    code, status = await http("POST", PODS + "?fieldValidation=Strict", body)
    assert code == 400
    assert 'strict decoding error: unknown field "spec.containers[0].imagee"' in status["message"]
    headers = {"Authorization": f"Bearer {server.token}"}
    async with http.session.post(server.url + PODS, json=body, headers=headers, ssl=http.trust) as answer:
        assert answer.status == 201
        assert answer.headers.getall("Warning") == ['299 - "unknown field \\"spec.containers[0].imagee\\""']
        assert "imagee" not in (await answer.json())["spec"]["containers"][0]


async def test_lists_know_their_revision_and_a_watch_goes_on_from_there(server: ApiServer, http: Http) -> None:
    await http("POST", PODS, pod("a"))
    _, listed = await http("GET", "/api/v1/pods")
    assert (listed["kind"], [each["metadata"]["name"] for each in listed["items"]]) == ("PodList", ["a"])
    await http("POST", PODS, pod("b"))
    revision = listed["metadata"]["resourceVersion"]
    _, text = await http("GET", f"/api/v1/pods?watch=1&timeoutSeconds=0&resourceVersion={revision}")
    assert (text["type"], text["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_a_watch_too_old_ends_with_an_error_event(server: ApiServer, http: Http) -> None:
    await http("POST", "/api/v1/namespaces/default/configmaps", {**pod("cm"), "kind": "ConfigMap"})
    for n in range(9000):
        version = server.api.store.find(server.api.catalog.named("configmaps"), "default", "cm")
        assert version is not None
        obj = {**version.obj, "metadata": dict(version.meta), "data": {"n": str(n)}}
        server.api.store.replace(server.api.catalog.named("configmaps"), version, obj)
    _, event = await http("GET", "/api/v1/configmaps?watch=true&resourceVersion=2")
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_tables_over_http(http: Http) -> None:
    await http("POST", PODS, pod("a"))
    _, table = await http("GET", PODS, headers={"Accept": TABLE})
    assert (table["kind"], table["rows"][0]["cells"][:3]) == ("Table", ["a", "0/1", "Pending"])
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    _, table = await http("GET", PODS + "?includeObject=Object", headers={"Accept": TABLE})
    assert table["rows"][0]["object"]["kind"] == "Pod"
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    _, partial = await http("GET", PODS, headers=accept)
    assert (partial["kind"], set(partial["items"][0])) == (
        "PartialObjectMetadataList",
        {"kind", "apiVersion", "metadata"},
    )


async def test_both_forms_of_discovery_agree(http: Http) -> None:
    _, groups = await http("GET", "/apis")
    plain = set()
    for group in groups["groups"]:
        for version in group["versions"]:
            _, listed = await http("GET", f"/apis/{version['groupVersion']}")
            plain |= {(version["groupVersion"], each["name"]) for each in listed["resources"]}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    _, found = await http("GET", "/apis", headers={"Accept": accept})
    aggregated = set()
    for item in found["items"]:
        for version in item["versions"]:
            for each in version["resources"]:
                names = [
                    each["resource"],
                    *(f"{each['resource']}/{s['subresource']}" for s in each.get("subresources", ())),
                ]
                aggregated |= {(f"{item['metadata']['name']}/{version['version']}", name) for name in names}
    assert plain == aggregated
    _, core = await http("GET", "/api/v1")
    assert {"pods", "pods/exec", "pods/binding", "namespaces/finalize"} <= {each["name"] for each in core["resources"]}


async def test_openapi_says_that_writes_are_validated_here(http: Http) -> None:
    _, index = await http("GET", "/openapi/v3")
    for path, entry in index["paths"].items():
        _, document = await http("GET", entry["serverRelativeURL"])
        for operations in document["paths"].values():
            assert "fieldValidation" in [each["name"] for each in operations["patch"]["parameters"]], path


async def test_binding_and_eviction_over_http(http: Http) -> None:
    await http("POST", PODS, pod("a"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n1"},
    }
    code, status = await http("POST", PODS + "/a/binding", binding)
    assert (code, status["status"]) == (201, "Success")
    code, status = await http("POST", PODS + "/a/binding", binding)
    assert (code, status["reason"]) == (409, "Conflict")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await http("POST", PODS + "/a/eviction", eviction))[0] == 201
    _, found = await http("GET", PODS + "/a")
    assert "deletionTimestamp" in found["metadata"]


async def test_a_binding_carries_annotations_and_conditions(http: Http) -> None:
    """As Kubernetes 1.34 does by default, which does not copy labels."""
    gated, noted = pod("gated"), pod("a")
    gated["spec"]["schedulingGates"] = [{"name": "x/y"}]
    noted["metadata"]["annotations"] = {"kept": "1", "other": "2"}
    await http("POST", PODS, gated)
    _, made = await http("POST", PODS, noted)
    meta = {"annotations": {"other": "3", "new": "4"}, "labels": {"l": "5"}}

    async def bind(name: str, **preconditions: str) -> tuple[int, Any]:
        binding = {"kind": "Binding", "metadata": meta | {"name": name} | preconditions, "target": {"name": "n1"}}
        return await http("POST", f"{PODS}/{name}/binding", {"apiVersion": "v1", **binding})

    for name, preconditions, words in (
        ("a", {"uid": "another"}, "UID in precondition: another"),
        ("a", {"resourceVersion": "1"}, "ResourceVersion in precondition: 1,"),
        ("gated", {}, "pod gated has non-empty .spec.schedulingGates"),
    ):
        code, status = await bind(name, **preconditions)
        assert (code, status["reason"]) == (409, "Conflict") and words in status["message"]
    code, _ = await bind("a", uid=made["metadata"]["uid"], resourceVersion=made["metadata"]["resourceVersion"])
    assert code == 201
    found = (await http("GET", PODS + "/a"))[1]["metadata"]
    assert found["annotations"] == {"kept": "1", "other": "3", "new": "4"} and "l" not in (found.get("labels") or {})


async def test_a_hundred_watches_at_once(server: ApiServer, http: Http) -> None:
    """Every client sees every pod, as a table or whole, with and without a selector."""

    async def watch(n: int) -> list[str]:
        headers = {"Authorization": f"Bearer {server.token}", "Accept": TABLE if n % 2 else "application/json"}
        query = "&labelSelector=app" if n % 3 else ""
        url = f"{server.url}{PODS}?watch=true{query}"
        seen = []
        async with http.session.get(url, headers=headers, ssl=http.trust) as answer:
            async for line in answer.content:
                found = json.loads(line)["object"]
                seen.append(found["rows"][0]["cells"][0] if n % 2 else found["metadata"]["name"])
                if len(seen) == 20:
                    return seen
        return seen

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        http.session, plain = session, http.session
        watches = [asyncio.create_task(watch(n)) for n in range(100)]
        for n in range(20):
            await http("POST", PODS, pod(f"p{n}", app="x"))
        results = await asyncio.wait_for(asyncio.gather(*watches), 60)
        http.session = plain
    assert all(each == [f"p{n}" for n in range(20)] for each in results)


async def test_closing_ends_open_watches_soon(http: Http, server: ApiServer) -> None:
    other = await serve(FakeKubelets())
    headers = {"Authorization": f"Bearer {other.token}"}
    trust = ssl.create_default_context(cadata=other.authority.certificate.decode())
    answer = await http.session.get(f"{other.url}{PODS}?watch=true", headers=headers, ssl=trust)
    await asyncio.wait_for(other.close(), 60)
    with pytest.raises((aiohttp.ClientError, asyncio.IncompleteReadError)):
        assert await answer.content.read() == b""
        raise aiohttp.ClientError("ended")


async def test_a_port_in_use_is_reported_in_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        wanted = f"the API server cannot listen on 127.0.0.1:{port}: the port is in use; choose another port"
        with pytest.raises(BadInput) as refused:
            await serve(FakeKubelets(), port=port)
    assert str(refused.value) == wanted
    with pytest.raises(BadInput, match="a port is a number from 0 to 65535"):
        await serve(FakeKubelets(), port=70000)


async def test_the_kubeconfig_is_for_its_owner_alone(server: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("older")
    path.chmod(0o644)
    server.write_kubeconfig(path, "lab-a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert (config["current-context"], config["clusters"][0]["cluster"]["server"]) == ("lab-a", server.url)
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]


async def test_a_node_passes_on_requests_for_the_metrics_of_its_agent(tmp_path: Path) -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="busy 1\n")

    app = web.Application()
    app.router.add_get("/metrics", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    file = tmp_path / "metrics.url"
    file.write_text(f"http://127.0.0.1:{runner.addresses[0][1]}/metrics\n")
    made = await serve(FakeKubelets(), agents={"n": file, "starting": tmp_path / "absent"}.get)
    try:
        async with aiohttp.ClientSession() as session:
            ask = Http(made, session)
            assert await ask("GET", "/api/v1/nodes/n%3A9394/proxy/metrics") == (200, "busy 1\n")
            assert await ask("GET", "/api/v1/nodes/n:9394/proxy/metrics") == (200, "busy 1\n")
            for node in ("starting", "unknown"):
                status, body = await ask("GET", f"/api/v1/nodes/{node}:9394/proxy/metrics")
                assert status == 503 and f"node {node}" in body["message"]
            assert (await ask("GET", "/api/v1/nodes/n:22/proxy/metrics"))[0] == 404
    finally:
        await made.close()
        await runner.cleanup()
