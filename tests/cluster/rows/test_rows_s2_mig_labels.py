"""S2 on real kubelets: the strategies of MIG, and every label without and with it, on two A100."""

from tests.cluster.rows.replay import Replay
from tests.scenarios import mig_sharing as sharing
from tests.scenarios.nvidia import offers
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["S2 MIG labels"]
WITHOUT = {
    f"nvidia.com/{name}"
    for name in (
        *("cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev", "cuda.runtime.major", "cuda.runtime.minor"),
        *("cuda.driver-version.major", "cuda.driver-version.minor", "cuda.driver-version.revision"),
        *("cuda.driver-version.full", "cuda.runtime-version.major", "cuda.runtime-version.minor"),
        *("cuda.runtime-version.full", "gfd.timestamp", "gpu.compute.major", "gpu.compute.minor", "gpu.count"),
        *("gpu.family", "gpu.machine", "gpu.memory", "gpu.mode", "gpu.product", "gpu.replicas"),
        *("gpu.sharing-strategy", "mig.capable", "mps.capable", "vgpu.present"),
    )
}
OF_A_HALF = {
    "product": "NVIDIA-A100-PCIE-40GB-MIG-3g.20gb", "count": "4", "replicas": "1", "sharing-strategy": "none",
    "memory": "19968", "multiprocessors": "42", "slices.gi": "3", "slices.ci": "3", "engines.copy": "3",
    "engines.decoder": "2", "engines.encoder": "0", "engines.jpeg": "0", "engines.ofa": "0",
}  # fmt: skip
WITH = {
    "nvidia.com/gpu.replicas": "0",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.config": "all-3g.20gb",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/mig.strategy": "mixed",
    **{f"{sharing.HALF}.{name}": value for name, value in OF_A_HALF.items()},
}


test_s2_5_single_of_the_policy = sharing.test_s2_5_single_of_the_policy_holds_without_a_configuration_of_the_plugin
test_s2_5_unequally_partitioned_gpus_are_invalid_in_single = (
    sharing.test_s2_5_unequally_partitioned_gpus_are_invalid_in_single
)
test_s2_3_without_mig_the_labels_are_those_of_gpus = sharing.test_s2_3_without_mig_the_labels_are_those_of_gpus_again


def test_s2_3_every_label_before_and_after(lab: Replay) -> None:
    wait_until(lambda: sharing.labels(lab).keys() >= WITHOUT, lambda: str(WITHOUT - sharing.labels(lab).keys()))
    sharing.labelled(lab, {"nvidia.com/mig.capable": "true", "nvidia.com/mps.capable": "false"})
    sharing.strategy(lab, "mixed")
    sharing.partition(lab, "all-3g.20gb")
    offers(lab, {sharing.HALF: 4})
    sharing.labelled(lab, WITH)
