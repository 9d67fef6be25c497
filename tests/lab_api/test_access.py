"""Who may do what in the lab: tokens of service accounts, roles, reviews, and what is answered to others.

The sentences are those of the API server of Kubernetes 1.36.
"""

import json
from typing import Any

import pytest

from lamina_lab.api.access.identities import Identities
from lamina_lab.api.access.rbac import Attributes, allows
from lamina_lab.api.access.reviews import REVIEWS, answer
from lamina_lab.api.access.tokens import AUDIENCE
from lamina_lab.api.access.users import ADMIN, User, impersonated
from lamina_lab.api.http.requests import attributes
from lamina_lab.kubernetes.errors import ApiError
from tests.kubectl import Kubectl
from tests.lab_api.apis import Bench

READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


class People(Bench):
    """A bench with identities. The account `reader` exists in the namespace `default`."""

    def __init__(self) -> None:
        super().__init__()
        self.identities = Identities("secret", self.store, self.catalog)

    async def ready(self) -> "People":
        await self.create("serviceaccounts", {"metadata": {"name": "reader"}})
        return self

    async def role(self, kind: str, name: str, *rules: Any, **fields: Any) -> None:
        resource = f"{kind.lower()}s.rbac.authorization.k8s.io"
        await self.create(resource, {"metadata": {"name": name, **fields}, "rules": list(rules)})

    async def bind(self, kind: str, role_kind: str, role: str, *subjects: Any) -> None:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}
        body = {"metadata": {"name": f"to-{role}"}, "roleRef": reference, "subjects": list(subjects)}
        await self.create(f"{kind.lower()}s.rbac.authorization.k8s.io", body)

    def token(self, **spec: Any) -> str:
        return str(self.identities.tokens.issue("default", "reader", {"spec": spec})["status"]["token"])

    def review(self, kind: str, spec: Any, user: User = ADMIN) -> Any:
        return answer(REVIEWS[kind], {"spec": spec}, user, self.identities)["status"]


READER = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}


@pytest.mark.parametrize(
    ("rule", "asked", "expected"),
    [
        (READ_PODS, Attributes("list", "", "pods", namespace="a"), True),
        (READ_PODS, Attributes("watch", "", "pods"), False),
        (READ_PODS, Attributes("get", "apps", "pods"), False),
        (READ_PODS, Attributes("get", "", "pods/log", "p", "a"), False),
        ({**READ_PODS, "resources": ["*/log"]}, Attributes("get", "", "pods/log", "p", "a"), True),
        ({**READ_PODS, "resources": ["pods/*"]}, Attributes("get", "", "pods/log", "p", "a"), False),
        ({**READ_PODS, "resources": ["*"]}, Attributes("get", "", "pods/log", "p", "a"), True),
        ({**READ_PODS, "resourceNames": ["p"]}, Attributes("get", "", "pods", "p", "a"), True),
        ({**READ_PODS, "resourceNames": ["p"]}, Attributes("get", "", "pods", "q", "a"), False),
        ({**READ_PODS, "resourceNames": ["p"]}, Attributes("list", "", "pods", "", "a"), False),
        (READ_PODS, Attributes("get", path="/metrics"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Attributes("get", path="/metrics/x"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}, Attributes("get", path="/metrics/x"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, Attributes("get", "", "pods"), False),
    ],
)
def test_what_a_rule_allows(rule: Any, asked: Attributes, expected: bool) -> None:
    assert allows(rule, asked) is expected


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/api/v1/pods", {}, Attributes("list", "", "pods")),
        ("GET", "/api/v1/pods", {"watch": "true"}, Attributes("watch", "", "pods")),
        ("GET", "/api/v1/namespaces/a/pods/p/log", {}, Attributes("get", "", "pods/log", "p", "a")),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", {}, Attributes("deletecollection", "apps", "deployments",
                                                                           "", "a")),
        ("POST", "/api/v1/namespaces/a/pods", {}, Attributes("create", "", "pods", "", "a")),
        ("GET", "/api/v1/namespaces/a", {}, Attributes("get", "", "namespaces", "a", "a")),
        ("GET", "/version", {}, Attributes("get", path="/version")),
        ("GET", "/apis/apps/v1", {}, Attributes("get", path="/apis/apps/v1")),
    ],
)  # fmt: skip
def test_what_a_request_asks_for(method: str, path: str, query: dict[str, str], expected: Attributes) -> None:
    assert attributes(method, path, query) == expected


async def test_a_role_holds_in_its_namespace_and_a_cluster_role_where_it_is_bound() -> None:
    people = await People().ready()
    await people.create("namespaces", {"metadata": {"name": "other"}})
    await people.role("Role", "pods", READ_PODS)
    await people.bind("RoleBinding", "Role", "pods", READER)
    user = people.identities.user({"Authorization": f"Bearer {people.token()}"}, ())
    allow = people.identities.roles.allow
    assert user.name == "system:serviceaccount:default:reader"
    assert allow(user, Attributes("list", "", "pods", namespace="default"))
    assert not allow(user, Attributes("list", "", "pods", namespace="other"))
    assert not allow(user, Attributes("list", "", "pods"))
    everyone = {"kind": "Group", "name": "system:serviceaccounts:default"}
    await people.bind("ClusterRoleBinding", "ClusterRole", "view", everyone)
    assert allow(user, Attributes("list", "", "pods"))
    assert not allow(user, Attributes("list", "lamina.dev", "grants"))
    aggregated = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    grants = {"verbs": ["list"], "apiGroups": ["lamina.dev"], "resources": ["grants"]}
    await people.role("ClusterRole", "grants", grants, labels=aggregated)
    assert allow(user, Attributes("list", "lamina.dev", "grants"))
    assert not allow(user, Attributes("get", "", "secrets", "s", "default"))


async def test_a_token_ends_with_its_time_its_account_and_what_it_is_bound_to() -> None:
    people = await People().ready()
    pod = {"spec": {"serviceAccountName": "reader", "containers": [{"name": "c", "image": "i"}]}}
    await people.create("pods", {"metadata": {"name": "p"}, **pod})
    holder, issue = people.identities.holder, people.token
    short, bound = issue(expirationSeconds=600), issue(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    found = holder(bound)
    assert found is not None and found.audiences == (AUDIENCE,)
    assert found.user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    people.now += 599
    assert holder(short) is not None
    people.now += 1
    assert holder(short) is None and holder(bound) is not None
    await people.delete("pods", "p", grace=0)
    assert holder(bound) is None
    plain = issue()
    await people.delete("serviceaccounts", "reader")
    await people.create("serviceaccounts", {"metadata": {"name": "reader"}})
    assert holder(plain) is None


async def test_a_token_holds_for_its_audiences_only() -> None:
    people = await People().ready()
    token = people.token(audiences=["vault"])
    assert people.identities.holder(token) is None
    review = people.review("tokenreviews", {"token": token, "audiences": ["vault", "else"]})
    assert (review["authenticated"], review["audiences"]) == (True, ["vault"])
    assert review["user"]["username"] == "system:serviceaccount:default:reader"
    assert review["user"]["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default",
                                        "system:authenticated"]  # fmt: skip
    for wrong in (token[:-2], f"x{token}", "", "a.b.c"):
        assert people.review("tokenreviews", {"token": wrong}) == {"user": {}, "error": "[invalid bearer token]"}


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**33}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, 404, 'pods "absent" not found'),
        ({"boundObjectRef": {"kind": "Node", "name": "n"}}, 422, "spec.boundObjectRef.kind: Unsupported value"),
    ],
)
async def test_a_token_that_cannot_be_issued(spec: Any, code: int, words: str) -> None:
    people = await People().ready()
    with pytest.raises(ApiError) as refused:
        people.token(**spec)
    assert refused.value.code == code and words in refused.value.message


async def test_reviews_answer_about_oneself_and_others() -> None:
    people = await People().ready()
    await people.role("ClusterRole", "pods", READ_PODS)
    await people.bind("ClusterRoleBinding", "ClusterRole", "pods", {"kind": "User", "name": "ann"})
    asked = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
    assert people.review("selfsubjectaccessreviews", asked, User("ann"))["allowed"] is True
    assert people.review("selfsubjectaccessreviews", asked, User("bob"))["allowed"] is False
    assert people.review("subjectaccessreviews", {**asked, "user": "ann"})["allowed"] is True
    for wrong in ({"user": "ann"}, asked):
        with pytest.raises(ApiError) as refused:
            people.review("subjectaccessreviews", wrong)
        assert refused.value.code == 422
    rules = people.review("selfsubjectrulesreviews", {"namespace": "default"}, User("ann"))["resourceRules"]
    assert READ_PODS in rules


def test_a_service_account_that_is_impersonated_has_its_groups() -> None:
    user = impersonated("system:serviceaccount:team:builder", ())
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated")
    assert impersonated("ann", ("staff",)).groups == ("staff", "system:authenticated")


def test_kubectl_creates_tokens_asks_and_impersonates(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "pods", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "pods", "--role=pods", "--serviceaccount=default:reader")
    kubectl("config", "set-credentials", "reader", f"--token={kubectl('create', 'token', 'reader').strip()}")
    mine = ("--as", "system:serviceaccount:default:reader")
    assert kubectl("auth", "can-i", "list", "pods", *mine).strip() == "yes"
    assert kubectl.run("auth", "can-i", "create", "pods", *mine).stdout.strip() == "no"
    for who in (mine, ("--user", "reader")):
        assert json.loads(kubectl("get", "pods", "-o", "json", *who))["items"] == []
        refused = kubectl.run("get", "pods", "-A", *who)
        assert refused.returncode == 1 and refused.stderr.strip() == (
            'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:default:reader" cannot list '
            'resource "pods" in API group "" at the cluster scope'
        )
    assert "system:serviceaccounts:default" in kubectl("auth", "whoami", "--user", "reader")
