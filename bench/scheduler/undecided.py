"""An extender that decides nothing: `python -m bench.scheduler.undecided KUBECONFIG FILE`.

It answers with the first node that it is asked about, and writes what each bind has to write, a grant and the binding.
So it shows what placing a pod through an extender takes at least, whatever the extender decides.
"""

import asyncio
import sys
from pathlib import Path

import msgspec
import uvloop
from aiohttp import web

from bench.scheduler import cluster
from lamina.core.component_names import FILTER_TO_BEST
from lamina.core.grants import ContainerGrant, Share
from lamina.core.requests import PodRequest
from lamina.ledger.grant_objects import grant_object
from lamina.ports.kube import GRANTS
from lamina.ports.kube.client import KubeClient, connect

_REQUEST = PodRequest(dialect="hami", containers=())
_SHARE = Share(gpu=cluster.inventory(0).gpus[0].uuid, memory_mib=1024, cores=20)


class _Undecided:
    """The verbs that kube-scheduler calls where one node remains."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_post(f"/{FILTER_TO_BEST}", self._filter)
        app.router.add_post("/bind", self._bind)
        return app

    async def _readyz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _filter(self, request: web.Request) -> web.Response:
        args = {name.lower(): value for name, value in msgspec.json.decode(await request.read()).items()}
        return _answer({"nodenames": args["nodenames"][:1]})

    async def _bind(self, request: web.Request) -> web.Response:
        args = msgspec.json.decode(await request.read())
        name, namespace, uid, node = (args[key] for key in ("PodName", "PodNamespace", "PodUID", "Node"))
        pod = {"metadata": {"name": name, "namespace": namespace, "uid": uid}}
        containers = (ContainerGrant(name="main", shares=(_SHARE,)),)
        await self._kube.create(GRANTS, grant_object(pod, node, _REQUEST, containers))
        await self._kube.bind(name, namespace=namespace, uid=uid, node=node)
        return _answer({"error": ""})


def _answer(message: dict[str, object]) -> web.Response:
    return web.Response(body=msgspec.json.encode(message), content_type="application/json")


async def _serve(kubeconfig: Path, file: Path) -> None:
    runner = web.AppRunner(_Undecided(await connect(kubeconfig)).application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    file.write_bytes(msgspec.json.encode({"extenderHttp": f"http://{host}:{port}"}))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1]), Path(sys.argv[2])))
