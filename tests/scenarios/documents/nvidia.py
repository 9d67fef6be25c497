"""NVIDIA, "Improving GPU Utilization in Kubernetes"."""

from tests.scenarios.documents.steps import Adds, Reads, Runs, Session, Step

NODES = """
driver: "515.65.01"
cuda: "11.7"
nodes:
- name: node-0
  cpus: 4
  memoryMiB: 16384
  gpus: [{model: T4}]
"""
WORDS = {"/tmp/dp-example-config.yaml": "dp-example-config.yaml"}
"""All users of a machine share /tmp."""
HELM = "Helm commands"
FIGURES = "The machine's own figures"
OTHERS = "Pods of the system"
MEMORY = "Memory of contexts"
MAP = "kubectl create configmap nvdp -n nvidia-gpu-operator --dry-run=client -o yaml {} | kubectl apply -f -"
USE = (
    """kubectl patch configmap lamina -n lamina-system --type=merge -p '{"data": {"lamina.yaml": """
    """"nativeDevices: {configMap: {name: nvdp, namespace: nvidia-gpu-operator}}"}}'"""
)
ONE = MAP.format("--from-file=config=/tmp/dp-example-config.yaml")
TWO = MAP.format(
    "--from-file=default=/tmp/dp-example-config.yaml --from-file=a100-80gb-config=/tmp/dp-example-config.yaml"
)

SCRIPT: list[Step | Adds] = [
    Session("$ nvidia-smi compute-policy --help"),
    Runs("$ cat << EOF > /tmp/dp-example-config.yaml"),
    Runs("$ helm install nvdp", f"{ONE}; {USE}", HELM),
    Runs("$ helm install nvdp", f"{TWO}; {USE}", HELM),
    Runs("$ kubectl label node"),
    Reads("version: v1"),
    Reads("nvidia.com/<resource-name>.replicas"),
    Reads("nvidia.com/gpu.product"),
    Reads("version: v1"),
    Runs("$ cat << EOF > /tmp/dp-example-config.yaml"),
    Runs("$ helm repo add nvdp", "true", HELM),
    Runs("$ helm install nvdp", f"{ONE}; {USE}", HELM),
    Session(
        "$ kubectl describe node",
        differs={r"^(cpu|pods|ephemeral-storage|hugepages-\dGi|hugepages-\dMi|memory):": FIGURES},
        whole=False,
    ),
    Runs("$ cat << EOF | kubectl create"),
    Session("$ kubectl get pods -A", differs={"calico": OTHERS}),
    Session("$ nvidia-smi -L", differs={"315MiB": MEMORY}, more={"160MiB": MEMORY}, whole=False),
]
