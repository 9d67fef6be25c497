"""A grant as an object of Kubernetes says whose it is, and where it is if a label can."""

import pytest

from lamina.core.grants import ContainerGrant, Share
from lamina.core.requests import PodRequest
from lamina.ledger import grant_object, grant_record
from lamina.ledger.grant_objects import MAX_LABEL, NODE_LABEL
from lamina.ports.kube import Object

CONTAINERS = (ContainerGrant(name="main", shares=(Share(gpu="GPU-0", memory_mib=1000),)),)
POD = {"metadata": {"name": "p", "namespace": "team", "uid": "u"}}


def written(node: str) -> Object:
    return grant_object(POD, node, PodRequest(dialect="hami", containers=()), CONTAINERS)


@pytest.mark.parametrize(("length", "labeled"), [(MAX_LABEL, True), (MAX_LABEL + 1, False)])
def test_a_grant_is_labeled_with_a_node_whose_name_a_label_holds(length: int, labeled: bool) -> None:
    node = "n" * length
    assert written(node)["metadata"]["labels"] == ({NODE_LABEL: node} if labeled else {})


def test_what_is_written_is_read_back_and_goes_with_its_pod() -> None:
    obj = written("node-0")
    (owner,) = obj["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", "p", "u", True)
    obj["metadata"]["uid"] = "g"
    record = grant_record(obj)
    assert (record.uid, record.namespace, record.name) == ("g", "team", obj["metadata"]["name"])
    assert (record.grant.node, record.grant.pod_uid, record.grant.containers) == ("node-0", "u", CONTAINERS)
