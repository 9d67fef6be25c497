"""Volcano, "GPU Virtualization"."""

from tests.scenarios.documents.steps import Adds, Applies, Reads, Runs, Step

NODES = """
driver: "550.54.15"
cuda: "12.4"
nodes:
- name: node-0
  gpus: [{model: A100-SXM4-40GB}]
- name: node-1
  gpus: [{model: T4, count: 2}]
"""
WORDS = {"{node-name}": "node-1", "<volcano-scheduler-ip>:8080": "$CONTROLLER", "<plugin-pod-ip>:9394": "$AGENT"}
POD = "apiVersion: v1\nkind: Pod\n"
SUMS = "Amounts of a node"
CONFIG_MAP = "The scheduler's ConfigMap"
MODES = "Modes of nodes"
LOOK = "What the pod has"
PORTS = "Addresses of metrics"
MIG = '{"data": {"lamina.yaml": "nodeconfig: [{name: node-0, operatingmode: mig}]"}}'
ADDRESS = "lamina lab metrics --name volcano | sed -n 's|^{} *http://\\([^/]*\\)/metrics.*|\\1|p'"

SCRIPT: list[Step | Adds] = [
    Adds(f"kubectl patch configmap lamina -n lamina-system --type=merge -p '{MIG}'", MODES),
    Reads('volcano.sh/vgpu-memory: "89424"', SUMS),
    Adds("kubectl create namespace volcano-system", CONFIG_MAP),
    Applies("kind: ConfigMap\n"),
    Runs("kubectl get node {node-name}", shows=r'vgpu-memory: "30720"(\n.*)?\n *volcano.sh/vgpu-number: "20"'),
    Applies("metadata:\n  name: hami-pod", POD),
    Adds("kubectl exec hami-pod -- nvidia-smi", LOOK, shows="0MiB / +3000MiB"),
    Runs("sudo nvidia-smi -mig 1"),
    Applies("metadata:\n  name: mig-pod", POD),
    Adds("kubectl exec mig-pod -- nvidia-smi -L", LOOK, shows=r"MIG 1g\.5gb"),
    Adds(f"CONTROLLER=$({ADDRESS.format('controller')}) AGENT=$({ADDRESS.format('node-1')})", PORTS),
    Runs("curl http://<volcano-scheduler-ip>", shows="volcano_vgpu_device_memory_allocation_for_a_certain_pod"),
    Runs("curl http://<plugin-pod-ip>", shows="hami_vgpu_memory_limit_bytes"),
]
