"""Roles and bindings that grant more than their author has, in the words of Kubernetes."""

from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.api.access.users import AUTHENTICATED, User
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench

GROUP = "rbac.authorization.k8s.io"
ANN = User("ann", ("team", AUTHENTICATED))
PODS: Object = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


def role(*rules: Any, name: str = "r", **fields: Any) -> Object:
    return {"metadata": {"name": name}, "rules": list(rules), **fields}


def binding(kind: str, of: str, user: str = "ann", name: str = "b") -> Object:
    subjects = [{"kind": "User", "name": user, "apiGroup": GROUP}]
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": of},
        "subjects": subjects,
    }


async def ann_with(*rules: Any) -> Bench:
    """A cluster where Ann has these rules everywhere."""
    bench = Bench()
    await bench.create(f"clusterroles.{GROUP}", role(*rules, name="own"))
    await bench.create(f"clusterrolebindings.{GROUP}", binding("ClusterRole", "own", name="own"))
    return bench


async def refused(bench: Bench, plural: str, body: Object) -> str:
    with pytest.raises(ApiError) as error:
        await bench.create(f"{plural}.{GROUP}", body, user=ANN)
    assert error.value.code == 403
    return error.value.message


@pytest.mark.parametrize("plural", ["roles", "clusterroles"])
async def test_a_role_grants_no_more_than_its_author_has(plural: str) -> None:
    bench = await ann_with(PODS)
    await bench.create(f"{plural}.{GROUP}", role({**PODS, "verbs": ["list"]}), user=ANN)
    more = {"verbs": ["get", "delete", "create"], "apiGroups": ["", "apps"], "resources": ["pods"]}
    named = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]}
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz"]}
    assert await refused(bench, plural, role(more, named, paths, name="x")) == (
        f'{plural}.{GROUP} "x" is forbidden: user "ann" (groups=["team" "system:authenticated"]) is attempting to '
        "grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete" "create"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


@pytest.mark.parametrize(
    ("own", "granted"),
    [
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {**PODS, "verbs": ["*"]}),
        (PODS, {**PODS, "resourceNames": ["a"]}),
        ({**PODS, "resources": ["*/log"]}, {**PODS, "resources": ["pods/log"]}),
        ({"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}, {"verbs": ["get"], "nonResourceURLs": ["/logs/a"]}),
    ],
)
async def test_what_covers_what(own: Object, granted: Object) -> None:
    bench = await ann_with(own)
    await bench.create(f"clusterroles.{GROUP}", role(granted), user=ANN)
    if own != granted:
        less = await ann_with(granted)
        assert "not currently held" in await refused(less, "clusterroles", role(own))


@pytest.mark.parametrize(("plural", "kind"), [("rolebindings", "ClusterRole"), ("clusterrolebindings", "ClusterRole")])
async def test_a_binding_grants_no_more_than_its_author_has(plural: str, kind: str) -> None:
    bench = await ann_with(PODS)
    await bench.create(f"clusterroles.{GROUP}", role(PODS, name="reader"))
    await bench.create(f"{plural}.{GROUP}", binding(kind, "reader", name="ok"), user=ANN)
    message = await refused(bench, plural, binding(kind, "cluster-admin"))
    assert message.startswith(f'{plural}.{GROUP} "b" is forbidden: user "ann" (groups=')
    assert '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in message
    with pytest.raises(ApiError, match=f'clusterroles.{GROUP} "none" not found'):
        await bench.create(f"{plural}.{GROUP}", binding(kind, "none"), user=ANN)


async def test_escalate_and_bind_lift_it(bench: Bench) -> None:
    rights = {"apiGroups": [GROUP], "resources": ["clusterroles"]}
    bench = await ann_with({**rights, "verbs": ["escalate"]})
    await bench.create(f"clusterroles.{GROUP}", role(PODS), user=ANN)
    assert "not currently held" in await refused(bench, "clusterrolebindings", binding("ClusterRole", "r"))
    bench = await ann_with({**rights, "verbs": ["bind"], "resourceNames": ["view"]})
    await bench.create(f"clusterrolebindings.{GROUP}", binding("ClusterRole", "view"), user=ANN)
    assert "not currently held" in await refused(bench, "clusterrolebindings", binding("ClusterRole", "edit", name="c"))


async def test_rights_of_one_namespace_grant_nothing_elsewhere(bench: Bench) -> None:
    await bench.create(f"roles.{GROUP}", role(PODS))
    await bench.create(f"rolebindings.{GROUP}", binding("Role", "r"))
    await bench.create(f"roles.{GROUP}", role(PODS, name="copy"), user=ANN)
    assert "not currently held" in await refused(bench, "clusterroles", role(PODS))


async def test_updates_are_checked_but_not_those_of_garbage_collection() -> None:
    bench = await ann_with(PODS)
    await bench.create(f"clusterroles.{GROUP}", role({**PODS, "verbs": ["delete"]}))
    await bench.patch(f"clusterroles.{GROUP}", "r", {"metadata": {"finalizers": ["a.b/c"]}}, user=ANN)
    for change in ({"metadata": {"labels": {"a": "b"}}}, {"rules": [{**PODS, "verbs": ["update"]}]}):
        with pytest.raises(ApiError, match="attempting to grant RBAC permissions not currently held"):
            await bench.patch(f"clusterroles.{GROUP}", "r", change, user=ANN)
    await bench.patch(f"clusterroles.{GROUP}", "r", {"rules": [PODS]}, user=ANN)


async def test_aggregation_needs_the_rights_of_an_administrator() -> None:
    bench = await ann_with(PODS)
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    message = await refused(bench, "clusterroles", role(PODS, aggregationRule=rule))
    assert message.endswith("is forbidden: must have cluster-admin privileges to use the aggregationRule")


@pytest.mark.parametrize(("plural", "kind"), [("rolebindings", "Role"), ("clusterrolebindings", "ClusterRole")])
async def test_a_binding_keeps_its_role(plural: str, kind: str) -> None:
    bench = Bench()
    made = await bench.create(f"{plural}.{GROUP}", binding(kind, "own"))
    with pytest.raises(ApiError, match=r"roleRef: Invalid value: .*: cannot change roleRef") as error:
        await bench.update(f"{plural}.{GROUP}", {**made, "roleRef": {**made["roleRef"], "name": "other"}})
    assert error.value.code == 422
    subjects = [{"kind": "User", "name": "bob", "apiGroup": GROUP}]
    assert (await bench.update(f"{plural}.{GROUP}", {**made, "subjects": subjects}))["subjects"] == subjects
