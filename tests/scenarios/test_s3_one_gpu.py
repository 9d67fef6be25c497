"""S3.6: one T4 offered twice, by a configuration written in our own file; each replica held to half of the memory."""

import re

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import wait_for
from tests.scenarios.nvidia import GPU, offers, pod, visible

CONFIG = """
nvidia:
  config: {default: twice}
  replicaMemory: equal
  configs:
    twice: {version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}}
"""


def test_s3_6_two_pods_run_on_one_gpu_each_with_half_of_its_memory(start_lab: StartLab) -> None:
    lab = start_lab("twice", "--gpu", "T4", "--gpus-per-node", "1", config=CONFIG)
    offers(lab, {GPU: 2})
    for name in ("one", "other"):
        lab.apply(pod(name))
    lab.settled("app=counting", {"Running": 2})
    assert visible(lab, "one") == visible(lab, "other") != ""
    for name in ("one", "other"):
        seen = lab.kubectl("exec", name, "--", "nvidia-smi")
        assert re.search(r"0MiB / +7680MiB", seen), seen
    lab.apply(pod("third"))
    wait_for(lambda: "all 2 nvidia.com/gpu are taken" in lab.lamina("why", "third").stdout, lambda: "no reason")
