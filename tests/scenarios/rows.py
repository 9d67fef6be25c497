"""The rows that two runners share, a lab and the test cluster: whose tests, on which GPUs, and Lamina's configuration.

A runner's module names the document as `ROWS = TABLE["S0"]`, by which its fixture `lab` is a node with these GPUs where
tests leave no pod, and takes the tests with `globals().update(ROWS.tests)`. Where a document asks for more, the module
has tests of its own; where those come in between and depend on what was before, it names each test instead.
"""

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from tests.scenarios import (
    cce,
    claim_manifests,
    claim_shares,
    claims_on_demand,
    mig_labels,
    mig_sharing,
    mps,
    nvidia_config,
    time_slicing,
    vgpu_scheduler,
    volcano,
    volcano_mig,
)
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Cluster
from tests.scenarios.resource_claims import offered

V1ALPHA1 = EXAMPLES / "configuration" / "v1alpha1"
V100_AND_A100 = """
dra: true
nodes:
- name: node-0
  gpus: [{model: V100-SXM2-32GB, count: 2}]
- name: node-1
  gpus: [{model: A100-SXM4-40GB, count: 1}]
"""


class Rows(NamedTuple):
    document: ModuleType
    gpu: str
    count: int = 2
    config: str = ""
    set_up: Callable[[Cluster], None] = lambda cluster: None
    """What the document does before its pods come."""
    machines: str = ""
    """Those of a lab with more than a node and its GPUs."""

    @property
    def tests(self) -> dict[str, object]:
        """The tests by their names, in the order of the document."""
        return {name: value for name, value in vars(self.document).items() if name.startswith("test_")}

    @property
    def options(self) -> tuple[str, ...]:
        """Of `lamina lab up`."""
        return () if self.machines else ("--gpu", self.gpu, "--gpus-per-node", str(self.count))


def of_claims(document: ModuleType, machines: str, config: str = "") -> Rows:
    """Tests of ResourceClaims. The test cluster has two nodes with two A100 of 40 GB each for all of them."""
    return Rows(document, "A100-PCIE-40GB", config=config, set_up=offered, machines=machines)


TABLE = {
    "S0": Rows(cce, "V100-SXM2-16GB"),
    "S1": Rows(volcano, "A100-SXM4-40GB"),
    "S1 MIG": Rows(volcano_mig, "A100-SXM4-40GB", 1, "sharing: {modes: [quota, mig]}\n"),
    "S2 time-slicing": Rows(time_slicing, "A100-PCIE-40GB", set_up=time_slicing.slice_gpus),
    "S2 MIG": Rows(mig_labels, "A100-PCIE-40GB", config=(EXAMPLES / "configuration" / "mig.yaml").read_text()),
    "S2 MIG labels": Rows(mig_sharing, "A100-PCIE-40GB"),
    "S2 MPS": Rows(mps, "A100-PCIE-40GB", set_up=mps.share_by_mps),
    "S3": Rows(nvidia_config, "A100-SXM4-80GB", 8),
    "S4": Rows(vgpu_scheduler, "V100-PCIE-32GB"),
    "claims": of_claims(claim_shares, (EXAMPLES / "lab-dra.yaml").read_text()),
    "claims on demand": of_claims(
        claims_on_demand,
        (EXAMPLES / "lab-dra-binding.yaml").read_text(),
        (V1ALPHA1 / "mig-for-claims.yaml").read_text(),
    ),
    "claims of others": of_claims(claim_manifests, V100_AND_A100, (V1ALPHA1 / "by-claim.yaml").read_text()),
}
SCALED = "devicePlugin:\n  deviceMemoryScaling: 3.0\n"
"""As helm's `--set devicePlugin.deviceMemoryScaling=3.0` in the document of S4."""
