"""The client against a server that says what the test tells it to, over real HTTP, and against no server at all."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from lamina import __version__
from lamina.errors import BadInput, LaminaError, Outside
from lamina.ports.kube import (
    GRANTS,
    NODES,
    PODS,
    AlreadyExists,
    BindingMetadata,
    Conflict,
    Gone,
    NotFound,
    Refused,
    StrategicPatch,
    Unreachable,
    answers,
)
from lamina.ports.kube import client as client_module
from lamina.ports.kube.client import KubeClient, connect
from lamina.ports.kube.errors import LacksRight, NotLoggedIn
from tests.waiting import until


@dataclass
class Server:
    """Answers each request with the next of `answers`; keeps what was asked."""

    answers: list[Callable[[web.Request], Any]] = field(default_factory=list)
    asked: list[tuple[str, str, Any, str]] = field(default_factory=list)
    port: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/version" and not self.answers:
            return web.json_response({"gitVersion": "v1.30.0"})
        body = await request.text()
        kind = request.headers.get("Content-Type", "")
        self.asked.append((request.method, request.path_qs, json.loads(body) if body else None, kind))
        answer = self.answers.pop(0)(request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        assert isinstance(answer, web.StreamResponse)
        return answer

    def says(self, obj: Any, status: int = 200, **headers: str) -> None:
        self.answers.append(lambda request: web.json_response(obj, status=status, headers=headers))

    def streams(self, *lines: str, truncated: bool = False) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for line in lines:
                await response.write(line.encode() + b"\n")
            if truncated:
                assert request.transport is not None
                request.transport.abort()
            return response

        self.answers.append(answer)


@contextlib.asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as made:
        yield made


def kubeconfig(path: Path, url: str) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path


def program(*command: str, version: str = "v1beta1") -> dict[str, Any]:
    """A user who logs in by a program."""
    api = f"client.authentication.k8s.io/{version}"
    return {"exec": {"apiVersion": api, "command": command[0], "args": list(command[1:])}}


@pytest.fixture
async def kube(server: Server, tmp_path: Path) -> AsyncIterator[KubeClient]:
    made = await connect(kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{server.port}"))
    yield made
    await made.close()


async def test_a_request_is_passed_on_to_a_pod_and_its_answer_need_not_be_json(
    kube: KubeClient, server: Server
) -> None:
    server.answers.append(lambda request: web.Response(text="busy 1\n"))
    assert await kube.proxied(PODS, "agent:9394", "metrics", namespace="team") == b"busy 1\n"
    server.says({"message": "no endpoints available"}, status=503)
    with pytest.raises(Outside, match="no endpoints available"):
        await kube.proxied(NODES, "n:9394", "metrics")
    assert [path for _, path, _, _ in server.asked] == [
        "/api/v1/namespaces/team/pods/agent%3A9394/proxy/metrics",
        "/api/v1/nodes/n%3A9394/proxy/metrics",
    ]


async def test_requests_say_which_version_asks(kube: KubeClient, server: Server) -> None:
    def answer(request: web.Request) -> web.Response:
        return web.json_response({"asked by": request.headers["User-Agent"]})

    server.answers.append(answer)
    assert (await kube.get(NODES, "n"))["asked by"] == f"lamina/{__version__}"


async def test_where_requests_go(kube: KubeClient, server: Server) -> None:
    meta = {"name": "p", "namespace": "team"}
    for _ in range(8):
        server.says({"metadata": {}})
    await kube.get(NODES, "n")
    await kube.create(GRANTS, {"metadata": {"name": "g", "namespace": "team"}})
    await kube.replace(PODS, {"metadata": meta}, subresource="status")
    await kube.patch(PODS, "p", {"x": None}, namespace="team")
    await kube.patch(PODS, "p", [{"op": "remove", "path": "/x"}], namespace="team")
    await kube.patch(PODS, "p", StrategicPatch({"x": [{"name": "y"}]}), namespace="team", subresource="status")
    await kube.delete(PODS, "p", namespace="team", uid="u1")
    carried = BindingMetadata(annotations={"a": "1"}, labels={"l": "2"})
    await kube.bind("p", namespace="team", uid="u1", node="n", metadata=carried, version="7")
    pod = "/api/v1/namespaces/team/pods/p"
    assert [(method, path) for method, path, _, _ in server.asked] == [
        ("GET", "/api/v1/nodes/n"),
        ("POST", "/apis/lamina.dev/v1alpha1/namespaces/team/grants"),
        ("PUT", f"{pod}/status"),
        ("PATCH", pod),
        ("PATCH", pod),
        ("PATCH", f"{pod}/status"),
        ("DELETE", pod),
        ("POST", f"{pod}/binding"),
    ]
    bodies = [body for _, _, body, _ in server.asked]
    assert bodies[1]["apiVersion"] == "lamina.dev/v1alpha1" and bodies[1]["kind"] == "Grant"
    assert bodies[3:6] == [{"x": None}, [{"op": "remove", "path": "/x"}], {"x": [{"name": "y"}]}]
    assert bodies[6]["preconditions"] == {"uid": "u1"} and bodies[7]["target"]["name"] == "n"
    precondition = {"uid": "u1", "resourceVersion": "7"}
    assert bodies[7]["metadata"] == meta | precondition | {"annotations": {"a": "1"}, "labels": {"l": "2"}}
    assert [kind for _, _, _, kind in server.asked][2:7] == [
        "application/json",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/json",
    ]


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("../../secrets/s?watch=true&x=", "..%2F..%2Fsecrets%2Fs%3Fwatch%3Dtrue%26x%3D"),
        ("a/b#c", "a%2Fb%23c"),
        ("a\tb\x00", "a%09b%00"),
        ("%2e%2e", "%252e%252e"),
        ("system:node", "system%3Anode"),
    ],
)
async def test_each_part_of_a_path_is_quoted(kube: KubeClient, server: Server, name: str, segment: str) -> None:
    paths: list[str] = []

    def answer(request: web.Request) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response({})

    server.answers += [answer, answer]
    await kube.get(PODS, name, namespace="team")
    await kube.get(PODS, "p", namespace=name)
    assert paths == [f"/api/v1/namespaces/team/pods/{segment}", f"/api/v1/namespaces/{segment}/pods/p"]


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_would_name_something_else_is_refused(kube: KubeClient, server: Server, name: str) -> None:
    for request in (kube.get(PODS, name, namespace="team"), kube.delete(PODS, name, namespace="team")):
        with pytest.raises(Refused, match="is not the name of an object"):
            await request
    if name:
        with pytest.raises(Refused, match="is not the name of an object"):
            await kube.get(PODS, "p", namespace=name)
    assert server.asked == []


async def drip(request: web.Request) -> web.StreamResponse:
    """Answers for ever, as a watch does."""
    response = web.StreamResponse()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(b" " * 100)
            await asyncio.sleep(0)
    return response


async def test_an_answer_that_is_too_large_is_an_error(
    kube: KubeClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_MAX_OBJECT", 1000)
    server.says({"x": "x" * 900})
    assert await kube.get(NODES, "n")
    server.answers += [drip, drip]
    for _ in range(2):
        with pytest.raises(Outside, match=r"answered GET api/v1/nodes/n with more than 1000 bytes"):
            await asyncio.wait_for(kube.get(NODES, "n"), 30)
    server.says({"metadata": {"resourceVersion": "7"}, "items": [{"x": "x" * 2000}]})
    assert len((await kube.list(NODES)).items) == 1, "a list may be larger"


async def test_an_answer_that_does_not_end_is_an_error(
    kube: KubeClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_OBJECT_S", 0.2)
    server.answers.append(drip)
    with pytest.raises(Unreachable, match=r"does not answer: GET api/v1/nodes/n took more than 0\.2 s"):
        await asyncio.wait_for(kube.get(NODES, "n"), 30)


async def test_a_long_list_comes_in_pages_and_starts_over_when_one_is_too_old(kube: KubeClient, server: Server) -> None:
    server.says({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"n": 1}]})
    server.says({"metadata": {"resourceVersion": "7"}, "items": [{"n": 2}]})
    assert await kube.list(PODS, labels="a=b", fields="spec.nodeName=n") == ([{"n": 1}, {"n": 2}], "7")
    assert "labelSelector=a%3Db" in server.asked[0][1] and "fieldSelector=spec.nodeName%3Dn" in server.asked[0][1]
    assert "continue=more" in server.asked[1][1]
    server.says({"metadata": {"resourceVersion": "8", "continue": "more"}, "items": [{"n": 1}]})
    server.says({"kind": "Status", "message": "too old", "reason": "Expired"}, 410)
    server.says({"metadata": {"resourceVersion": "9"}, "items": [{"n": 3}]})
    assert await kube.list(PODS) == ([{"n": 3}], "9")
    assert "limit" not in server.asked[-1][1]


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (403, "Forbidden", Refused),
        (401, "Unauthorized", NotLoggedIn),
        (422, "Invalid", Refused),
        (500, "InternalError", Outside),
        (503, None, Outside),
    ],
)
async def test_errors_become_ours_with_the_servers_words(
    kube: KubeClient, server: Server, status: int, reason: str | None, kind: type[LaminaError]
) -> None:
    server.says({"kind": "Status", "message": "these words", "reason": reason}, status)
    with pytest.raises(Outside, match=rf"^Kubernetes answered {status} to GET .*: these words$") as caught:
        await kube.get(PODS, "p", namespace="team")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope', LacksRight),
        ('forbidden: User "system:anonymous" cannot get path "/version"', LacksRight),
        ('pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1', Refused),
    ],
)
async def test_a_missing_right_is_not_what_quotas_and_admission_refuse(
    kube: KubeClient, server: Server, message: str, kind: type[LaminaError]
) -> None:
    server.says({"kind": "Status", "message": message, "reason": "Forbidden"}, 403)
    with pytest.raises(Refused) as caught:
        await kube.get(PODS, "p", namespace="team")
    assert type(caught.value) is kind


async def test_an_expired_login_is_said_at_once_with_whose_it_is(server: Server, tmp_path: Path) -> None:
    server.says({"kind": "Status", "message": "Unauthorized", "reason": "Unauthorized"}, 401)
    path = kubeconfig(tmp_path / "k", f"http://127.0.0.1:{server.port}")
    with pytest.raises(NotLoggedIn) as caught:
        await connect(path)
    assert str(caught.value).startswith(f"the login of kubeconfig {path} (context x) is missing or has expired; log in")
    assert caught.value.exit_code == 4


async def test_an_answer_that_is_no_json_is_an_error_too(kube: KubeClient, server: Server) -> None:
    server.answers.append(lambda request: web.Response(text="<html>", status=200))
    with pytest.raises(Outside, match="something that is not JSON"):
        await kube.get(NODES, "n")
    server.answers.append(lambda request: web.Response(text="bad gateway", status=502))
    with pytest.raises(Outside, match=r"502 .* bad gateway"):
        await kube.get(NODES, "n")


@pytest.mark.parametrize("body", [[], "text", None, 7, {"items": []}, {"metadata": []}, {"metadata": {}, "items": 3}])
async def test_json_that_is_not_what_was_asked_for_is_an_error(kube: KubeClient, server: Server, body: Any) -> None:
    server.says(body)
    what = "a list" if isinstance(body, dict) else "an object"
    with pytest.raises(Outside, match=rf"^Kubernetes answered GET api/v1/nodes with something that is not {what}$"):
        await kube.list(NODES)


@pytest.mark.parametrize("event", ["[]", "3", "{}", '{"type": "ADDED"}', '{"type": "ADDED", "object": {}}'])
async def test_an_event_that_is_none_is_an_error(kube: KubeClient, server: Server, event: str) -> None:
    server.streams(event)
    with pytest.raises(Outside, match=r"^Kubernetes answered watching api/v1/pods with something that is not an event"):
        await anext(kube.watch(PODS, "0"))


@pytest.mark.parametrize("written", ["a\nb\r\n  c\u2028d", "x" * 5000, {"deep": ["\n"]}])
async def test_a_refusal_is_one_line_of_limited_length(kube: KubeClient, server: Server, written: Any) -> None:
    server.says({"message": written}, 422)
    server.answers.append(lambda request: web.Response(text=f"{written}", status=502))
    for _ in range(2):
        with pytest.raises(Outside) as caught:
            await kube.get(NODES, "n")
        assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 1200
    server.streams(json.dumps({"type": "ERROR", "object": {"code": "410", "message": written}}))
    with pytest.raises(Outside, match=r"^Kubernetes answered 500 to watching") as caught:
        await anext(kube.watch(PODS, "0"))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 1.0),
        ("2", 2.0),
        ("nan", 1.0),
        ("-NaN", 1.0),
        ("-5", 0.0),
        ("inf", 10.0),
        ("1e999", 10.0),
        ("9" * 5000, 10.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1.0),
    ],
)
def test_how_long_a_busy_server_is_left_alone(header: str | None, seconds: float) -> None:
    assert answers.retry_after(header) == seconds


async def test_a_name_that_makes_no_address_is_refused(kube: KubeClient, server: Server) -> None:
    with pytest.raises(Refused, match=r"^the address of GET api/v1/nodes/n+\.\.\. cannot be used: URL too long$"):
        await kube.get(NODES, "n" * 70_000)
    assert server.asked == []


async def test_a_busy_server_is_asked_again(kube: KubeClient, server: Server) -> None:
    for _ in range(3):
        server.says({}, 429, **{"Retry-After": "0"})
    server.says({"ok": True})
    assert await kube.get(NODES, "n") == {"ok": True}
    for _ in range(4):
        server.says({"message": "busy"}, 429, **{"Retry-After": "0"})
    with pytest.raises(Outside, match=r"429 .* busy"):
        await kube.get(NODES, "n")


def line(kind: str, version: int) -> str:
    return json.dumps({"type": kind, "object": {"metadata": {"name": "p", "resourceVersion": str(version)}}})


async def test_a_watch_yields_line_by_line(kube: KubeClient, server: Server) -> None:
    server.streams(line("ADDED", 1), "", line("BOOKMARK", 5))
    seen = [each async for each in kube.watch(PODS, "0", fields="spec.nodeName=n")]
    assert [each.kind for each in seen] == ["ADDED", "BOOKMARK"]
    assert "watch=true" in server.asked[0][1] and "resourceVersion=0" in server.asked[0][1]


async def test_only_a_newline_ends_a_line_of_a_watch(kube: KubeClient, server: Server) -> None:
    """Servers write these characters as they are; any user who may annotate a pod may put them there."""
    odd = "a\u0085b\u2028c\x1ed"
    text = json.dumps(
        {"type": "ADDED", "object": {"metadata": {"name": odd, "resourceVersion": "1"}}}, ensure_ascii=False
    )
    server.streams(text, line("ADDED", 2))
    seen = [each async for each in kube.watch(PODS, "0")]
    assert [each.object["metadata"]["name"] for each in seen] == [odd, "p"]


async def test_a_watch_that_is_too_old_says_gone(kube: KubeClient, server: Server) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    server.streams(json.dumps({"type": "ERROR", "object": status}))
    with pytest.raises(Gone):
        await anext(kube.watch(PODS, "0"))
    server.says(status, 410)
    with pytest.raises(Gone):
        await anext(kube.watch(PODS, "0"))


async def test_a_truncated_watch_is_an_error(kube: KubeClient, server: Server) -> None:
    server.streams(line("ADDED", 1), '{"type": "ADD', truncated=True)
    with pytest.raises(Outside):
        async for _ in kube.watch(PODS, "0"):
            pass


async def test_a_server_that_goes_away_is_named(kube: KubeClient, server: Server) -> None:
    def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.answers += [hang_up, hang_up]  # a kept connection may have ended meanwhile, so a GET is sent once more
    with pytest.raises(Unreachable, match=f"http://127.0.0.1:{server.port} does not answer"):
        await kube.get(NODES, "n")


async def test_kubeconfigs_that_lead_nowhere(tmp_path: Path, unused_tcp_port: int) -> None:
    (tmp_path / "text").write_text("just words")
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "empty").write_text("clusters: []\ncontexts: []\ncurrent-context: x")
    kubeconfig(tmp_path / "dead", f"http://127.0.0.1:{unused_tcp_port}")
    for name, words in {
        "missing": "not found",
        "text": "is not a kubeconfig with clusters, users and contexts",
        "broken": "cannot be used",
        "empty": "Context 'x' not found",
        "dead": f"Kubernetes API: the Kubernetes server http://127.0.0.1:{unused_tcp_port} does not answer",
    }.items():
        with pytest.raises(BadInput) as caught:
            await connect(tmp_path / name)
        text = str(caught.value)
        assert text.startswith(f"kubeconfig {tmp_path / name} ") and words in text and "\n" not in text
        assert caught.value.exit_code == (3 if name == "dead" else 2)


async def test_a_part_of_the_cluster_waits_for_its_server(
    tmp_path: Path, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes a while later; what else can be wrong with a kubeconfig is reported at once."""
    path = kubeconfig(tmp_path / "k", f"http://127.0.0.1:{unused_tcp_port}")
    waiting = asyncio.create_task(connect(path, again_s=0.01))
    await until(lambda: "does not answer" in caplog.text)
    async with asyncio.timeout(30), serving(unused_tcp_port):
        await (await waiting).close()
    assert caplog.text.count("Waiting for the cluster") == 1
    with pytest.raises(BadInput, match="not found"):
        await connect(tmp_path / "missing", again_s=0.01)


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"tokenFile": "/nowhere/token"}, "Token file /nowhere/token not found"),
        (program("/nowhere/login"), "No such file or directory: '/nowhere/login'"),
        (program("false"), "Exec false returned 1"),
        (program("true"), "a login program returned no token"),
        (program("echo", "{}"), "a login program returned no token"),
        (program("true", version="v1"), "api version client.authentication.k8s.io/v1 not implemented"),
    ],
)
async def test_a_login_that_fails_is_one_sentence(tmp_path: Path, user: dict[str, Any], words: str) -> None:
    path = kubeconfig(tmp_path / "k", "http://127.0.0.1:1")
    document = yaml.safe_load(path.read_text())
    document["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(NotLoggedIn, match=r"cannot log in to the Kubernetes server http://127\.0\.0\.1:1") as caught:
        await connect(path)
    assert words in str(caught.value) and "\n" not in str(caught.value)


async def test_a_token_that_has_been_rotated_is_read_again(tmp_path: Path) -> None:
    seen = []
    token, path = tmp_path / "token", tmp_path / "k"
    token.write_text("old")

    def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"metadata": {}}, status=200 if seen[-1] == "Bearer new" else 401)

    async with serving() as server:
        document = yaml.safe_load(kubeconfig(path, f"http://127.0.0.1:{server.port}").read_text())
        document["users"][0]["user"] = {"tokenFile": str(token)}
        path.write_text(yaml.safe_dump(document))
        kube = await connect(path)
        server.answers += [answer] * 4
        with pytest.raises(Refused, match="401"):
            await kube.get(NODES, "n")
        token.write_text("new")
        for _ in range(2):
            await kube.get(NODES, "n")
        await kube.close()
    assert seen == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_the_environment_names_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "named"))
    with pytest.raises(BadInput, match=r"named cannot be used"):
        await connect()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(BadInput, match="the pod's service account cannot be used"):
        await connect()


async def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no context other; it has x$"):
        await connect(kubeconfig(tmp_path / "k", "http://127.0.0.1:1"), context="other")
