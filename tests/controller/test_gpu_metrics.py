"""What is granted of GPUs, under the names of other systems."""

from msgspec import structs

from lamina.configuration import DEFAULT
from lamina.controller.compat.metrics import families
from lamina.controller.ledger.ledger import Ledger
from lamina.controller.quotas.resource_quotas import ResourceQuotas
from tests.controller.cluster import gpus, inventory


def test_a_gpu_that_may_be_granted_in_no_part() -> None:
    """An inventory may say so; the page of metrics shows the other GPUs too."""
    nothing, good = gpus()
    nothing = structs.replace(nothing, capacity_mib=0, cores_capacity=0)
    ledger = Ledger()
    ledger.observe_inventory(inventory("node-0", nothing, good))
    found = {family.name: family.samples for family in families(ledger, ResourceQuotas(), DEFAULT)}
    for name in ("hami_node_gpu_memory_allocated_ratio", "hami_gpu_core_allocated_ratio"):
        assert [sample.value for sample in found[name]] == [0, 0]
