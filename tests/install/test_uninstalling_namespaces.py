"""What an uninstallation does to the namespace: it deletes one that was made for Lamina, and nothing of others."""

import pytest

from lamina.core.component_names import ADMISSION_SECRET, EXTENDER_CLIENT_SECRET, EXTENDER_SECRET
from lamina.install.names import CONTROLLER, PART_OF, TEST
from lamina.ports.kube import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
    Resource,
)
from lamina.ports.kube.errors import Refused
from tests.install.uninstallation import InstalledKube, installed, keys, ours, uninstall

SPACE = "gpu-sharing"


async def running(*, created_for_us: bool = True, release: str = "") -> InstalledKube:
    """An installation that has been running in a namespace, by Helm if there is a release."""
    kube = await installed(SPACE)
    if not created_for_us:
        await kube.patch(NAMESPACES, SPACE, {"metadata": {"labels": dict.fromkeys(PART_OF)}})
    for name in (ADMISSION_SECRET, EXTENDER_SECRET, EXTENDER_CLIENT_SECRET):
        await kube.create(SECRETS, {"metadata": {"name": name}, "type": "kubernetes.io/tls"}, namespace=SPACE)
    for name in ("lamina-controller", "lamina-turns", "lamina-defrag", "lamina-scheduler"):
        await kube.create(LEASES, {"metadata": {"name": name}}, namespace=SPACE)
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "kube-root-ca.crt"}}, namespace=SPACE)
    if release:
        await kube.create(PODS, {"metadata": {"name": TEST}, "spec": {"containers": []}}, namespace=SPACE)
        labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": release}
        await kube.patch(CLUSTER_ROLE_BINDINGS, CONTROLLER, {"metadata": {"labels": labels}})
        for name in (release, "other"):
            meta = {"name": f"sh.helm.release.v1.{name}.v1", "labels": {"owner": "helm", "name": name}}
            await kube.create(SECRETS, {"metadata": meta, "type": "helm.sh/release.v1"}, namespace=SPACE)
    return kube


def inside(kube: InstalledKube) -> list[str]:
    return [f"{resource.kind} {name}" for resource, namespace, name in keys(kube) if namespace == SPACE]


async def test_a_namespace_that_was_made_for_lamina_is_deleted() -> None:
    kube = await running()
    reported, left = await uninstall(kube)
    assert (left, ours(kube)) == ([], [])
    assert any("the namespace is gone" in step for step in reported)


@pytest.mark.parametrize("release", ["", "gpus"])
async def test_a_namespace_of_others_stays_without_anything_of_lamina(release: str) -> None:
    kube = await running(created_for_us=False, release=release)
    reported, left = await uninstall(kube)
    assert left == []
    others = ["Secret sh.helm.release.v1.other.v1"] if release else []
    assert sorted(inside(kube)) == ["ConfigMap kube-root-ca.crt", *others]
    assert [key[0].kind for key in ours(kube) if not key[1]] == ["Namespace"]
    reason = f"it has objects of others: {others[0]}" if others else "it was not created for Lamina"
    assert any(f"the namespace {SPACE} stays, because {reason}" in step for step in reported)


@pytest.mark.parametrize(
    ("resource", "more"),
    [
        (PODS, {"spec": {"containers": []}}),
        (CONFIG_MAPS, {}),
        (SECRETS, {"type": "Opaque"}),
        (SERVICES, {}),
        (VOLUME_CLAIMS, {}),
        (DEPLOYMENTS, {}),
    ],
)
async def test_a_namespace_with_objects_of_others_stays_though_it_was_made_for_lamina(
    resource: Resource, more: dict[str, object]
) -> None:
    kube = await running()
    await kube.create(resource, {"metadata": {"name": "theirs"}, **more}, namespace=SPACE)
    reported, left = await uninstall(kube)
    assert left == []
    assert f"{resource.kind} theirs" in inside(kube)
    assert any(f"because it has objects of others: {resource.kind} theirs" in step for step in reported)
    await kube.delete(resource, "theirs", namespace=SPACE)
    assert (await uninstall(kube))[1] == []
    assert ours(kube) == [], "a repeated uninstallation deletes it"


async def test_many_objects_of_others_are_counted() -> None:
    kube = await running()
    for number in range(9):
        await kube.create(CONFIG_MAPS, {"metadata": {"name": f"theirs-{number}"}}, namespace=SPACE)
    reported, _ = await uninstall(kube)
    assert any("ConfigMap theirs-4, 4 more" in step for step in reported)


@pytest.mark.parametrize("kind", ["kubernetes.io/service-account-token", "kubernetes.io/dockercfg"])
async def test_what_platforms_put_into_each_namespace_keeps_none(kind: str) -> None:
    kube = await running()
    await kube.create(SECRETS, {"metadata": {"name": "default-x7k2p"}, "type": kind}, namespace=SPACE)
    await uninstall(kube)
    assert ours(kube) == []


async def test_the_record_of_the_installation_goes_last() -> None:
    """A repeated uninstallation finds the namespace by it."""
    kube = await running()
    kube.failing["delete"] = lambda resource, _: Refused("not now") if resource == NAMESPACES else None
    with pytest.raises(Refused):
        await uninstall(kube)
    assert (await kube.get(CLUSTER_ROLE_BINDINGS, CONTROLLER))["subjects"][0]["namespace"] == SPACE
    assert (MUTATING_WEBHOOKS, "", "lamina.dev") not in keys(kube)
    kube.failing.clear()
    assert (await uninstall(kube))[1] == []
    assert ours(kube) == []
