"""What is granted of GPUs, under the names of other systems."""

import logging

from msgspec import structs

from lamina.configuration import DEFAULT
from lamina.controller.compatibility import families
from lamina.controller.metrics import Metrics
from lamina.core.claims import HeldClaim
from lamina.core.grants import ContainerGrant, Share
from lamina.ledger.ledger import Ledger
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.set_aside import SetAside
from tests.worlds.objects import gpus, inventory


def test_a_gpu_that_may_be_granted_in_no_part() -> None:
    """An inventory may say so; the page of metrics shows the other GPUs too."""
    nothing, good = gpus()
    nothing = structs.replace(nothing, capacity_mib=0, cores_capacity=0)
    ledger = Ledger()
    ledger.observe_inventory(inventory("node-0", nothing, good))
    found = {family.name: family.samples for family in families(ledger, ResourceQuotas(), DEFAULT)}
    for name in ("hami_node_gpu_memory_allocated_ratio", "hami_gpu_core_allocated_ratio"):
        assert [sample.value for sample in found[name]] == [0, 0]


def test_what_claims_hold_of_a_gpu_is_told_apart_from_grants() -> None:
    request = ContainerGrant(name="gpu", shares=(Share(gpu="GPU-0", memory_mib=4096, cores=30),))
    claims = tuple(HeldClaim(namespace="default", name=name, uid=name, requests=(request,)) for name in "ab")
    ledger = Ledger()
    ledger.observe_inventory(structs.replace(inventory(), claims=claims))
    registry = Metrics(ledger, SetAside(logging.getLogger())).registry
    labels = {"node": "node-0", "model": "V100-SXM2-32GB"}
    for name, of_first in (("memory_claimed_mebibytes", 8192), ("cores_claimed_percent", 60)):
        read = [registry.get_sample_value(f"lamina_gpu_{name}", labels | {"gpu": f"GPU-{index}"}) for index in (0, 1)]
        assert read == [of_first, 0]
    assert registry.get_sample_value("lamina_gpu_memory_granted_mebibytes", labels | {"gpu": "GPU-0"}) == 0
