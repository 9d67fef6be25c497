"""A namespace hears once that a percentage of compute lends idle time."""

from typing import Any

import pytest

from lamina.admission import service
from lamina.admission.review import ALLOWED, Verdict, refused, review_template
from lamina.admission.service import Notices
from lamina.configuration import DEFAULT
from tests.controller.reviews import review
from tests.worlds.objects import gpu_pod

LENDS = Verdict(allowed=True, warnings=("other",), notice="lends")


def test_only_the_first_verdict_of_a_namespace_has_the_notice() -> None:
    given = Notices()
    assert given.applied(LENDS, "a").warnings == ("other", "lends (said once for namespace a)")
    assert given.applied(LENDS, "a").warnings == ("other",)
    assert given.applied(LENDS, "b").warnings == ("other", "lends (said once for namespace b)")


def test_a_refusal_does_not_use_the_notice_up() -> None:
    given = Notices()
    given.applied(refused("no"), "a")
    given.applied(Verdict(allowed=False, notice="lends"), "a")
    assert given.applied(ALLOWED, "a") is ALLOWED
    assert len(given.applied(LENDS, "a").warnings) == 2


def test_what_is_remembered_is_bounded_and_the_least_recent_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_NAMESPACES", 2)
    given = Notices()
    for namespace in ("a", "b", "a", "c"):
        given.applied(LENDS, namespace)
    assert [len(given.applied(LENDS, each).warnings) for each in ("a", "c", "b")] == [1, 1, 2]


def controlled(obj: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Any", "name": "any", "uid": "1", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def test_people_get_it_and_controllers_do_not() -> None:
    pod = gpu_pod(gpumem=1000, gpucores=30)
    workload = {"metadata": {"name": "w"}, "spec": {"template": {"metadata": {}, "spec": pod["spec"]}}}
    assert "is a share that lends" in review(pod, DEFAULT).notice
    assert review_template(workload, "team", DEFAULT).notice == review(pod, DEFAULT).notice
    assert review(controlled(pod), DEFAULT).notice == ""
    assert review_template(controlled(workload), "team", DEFAULT).notice == ""
    assert review(gpu_pod(gpu=1), DEFAULT).notice == ""
