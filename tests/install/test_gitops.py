"""What tools do that apply a repository again and again: nothing that they wrote differs when Lamina writes too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.ports.kube import MUTATING_WEBHOOKS
from lamina.ports.kube.client import connect
from tests.controller.cluster import running
from tests.helm import helm
from tests.kubectl import Kubectl
from tests.lab_api.servers import Threaded
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CLIENT_SIDE = ("apply",)
SERVER_SIDE = ("apply", "--server-side", "--field-manager=argocd-controller")
VALUES = {
    "image": {"repository": "example.com/lamina", "tag": "v1"},
    "agent": {"resources": {"requests": {"cpu": 0.5, "memory": "0.5Gi"}}, "mps": True, "pools": [{"name": "rhel"}]},
    "dashboard": {"enabled": True},
    "controller": {"hostNetwork": True, "preemption": True, "idleShares": True},
}
"""With fractions that an API server stores in another form."""
WORKLOAD = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "half", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "half"}},
        "template": {
            "metadata": {"labels": {"app": "half"}},
            "spec": {
                "containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}}]
            },
        },
    },
}


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> str:
    """As Argo CD and Flux render the chart, without hooks."""
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    arguments = ("lamina", str(ROOT / "deploy/helm/lamina"), "--namespace", "lamina-system", "--include-crds")
    made = helm("template", *arguments, "--skip-tests", "--kube-version", "1.34.0", "--values", str(values))
    assert made.returncode == 0, made.stderr
    return made.stdout


def versions(kubectl: Kubectl, manifests: str) -> dict[str, tuple[str, int]]:
    """The version and the generation of each object."""
    found = json.loads(kubectl("get", "-o", "json", "-f", "-", stdin=manifests))["items"]
    made = {f"{each['kind']} {each['metadata']['name']}": each["metadata"] for each in found}
    assert len(made) > 40
    return {name: (meta["resourceVersion"], meta.get("generation", 0)) for name, meta in made.items()}


@pytest.mark.parametrize("apply", [CLIENT_SIDE, SERVER_SIDE], ids=["client-side", "server-side"])
def test_the_chart_applied_twice_changes_no_object(apply: tuple[str, ...], kubectl: Kubectl, manifests: str) -> None:
    kubectl(*apply, "-f", "-", stdin=manifests)
    before = versions(kubectl, manifests)
    kubectl(*apply, "-f", "-", stdin=manifests)
    assert versions(kubectl, manifests) == before


@pytest.mark.parametrize("apply", [CLIENT_SIDE, SERVER_SIDE], ids=["client-side", "server-side"])
async def test_what_lamina_writes_and_what_is_applied_leave_each_other_alone(
    apply: tuple[str, ...], lab: Threaded, kubectl: Kubectl, manifests: str, tmp_path: Path
) -> None:
    async def applied(what: str) -> None:
        await asyncio.to_thread(kubectl, *apply, "-f", "-", stdin=what)

    everything = f"{manifests}---\n{json.dumps(WORKLOAD)}"
    await applied(manifests)
    kube = await connect(Path(kubectl.environment["KUBECONFIG"]))

    async def registered() -> Any:
        return (await kube.get(MUTATING_WEBHOOKS, "lamina.dev")).get("webhooks")

    try:
        async with running(kube, tmp_path):
            await until(registered)
            await applied(everything)

            async def unchanged() -> bool:
                """While the controller starts, it may write once more."""
                before = await asyncio.to_thread(versions, kubectl, everything)
                await applied(everything)
                return await asyncio.to_thread(versions, kubectl, everything) == before

            await until(unchanged)
            stored = json.loads(await asyncio.to_thread(kubectl, "get", "deployment/half", "-o", "json"))
            limits = stored["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            assert limits == {"nvidia.com/gpu": "0", "lamina.dev/gpu-percentage": "50"}, "the null control: it differs"
    finally:
        await kube.close()


def test_a_dry_run_as_flux_and_argo_cd_make_it_finds_no_difference(kubectl: Kubectl, manifests: str) -> None:
    kubectl(*SERVER_SIDE, "-f", "-", stdin=manifests)
    found = kubectl.run("diff", "--server-side", "--field-manager=argocd-controller", "-f", "-", stdin=manifests)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    changed = manifests.replace("replicas: 2", "replicas: 3")
    found = kubectl.run("diff", "--server-side", "--field-manager=argocd-controller", "-f", "-", stdin=changed)
    assert found.returncode == 1 and "+  replicas: 3" in found.stdout
