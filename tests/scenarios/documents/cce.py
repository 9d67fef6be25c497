"""Huawei CCE, "Using GPU Virtualization"."""

from tests.scenarios.documents.steps import Prints, Reads, Runs, Saves, Step

NODES = """
driver: "470.57.02"
cuda: "11.4"
nodes:
- name: node-0
  gpus: [{model: V100-SXM2-16GB, persistence: false}]
"""
WORDS = {"<your_image_address>": "cuda"}
FORM = "The console's form"
NAME = "The name of the pod"
SMI = "kubectl exec -it deploy/gpu-app -- nvidia-smi"
IDLE = {r"No running processes found": "The empty list of processes"}


def script(*, compute: bool) -> list[Step]:
    """The document gives two manifests to choose from: memory, or memory and compute."""
    return [
        Reads("kubectl exec -it gpu-app", FORM),
        Reads("Wed Apr 12 07:54:59", FORM),
        Reads("nvidia-smi", FORM),
        Reads("Wed Apr 12 09:31:10", FORM),
        Saves("apiVersion: apps/v1", "other.yaml" if compute else "gpu-app.yaml"),
        Saves("apiVersion: apps/v1", "gpu-app.yaml" if compute else "other.yaml"),
        Runs("kubectl apply -f gpu-app.yaml"),
        Runs("kubectl exec -it gpu-app", SMI, NAME, shows="NVIDIA-SMI"),
        Prints("Wed Apr 12 07:54:59", more=IDLE),
        Runs("nvidia-smi"),
        Prints("Wed Apr 12 09:31:10"),
    ]
