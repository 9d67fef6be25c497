"""Carlos Camacho, "Sharing your GPU in the cloud"."""

from tests.scenarios.documents.steps import Adds, Prints, Reads, Runs, Session, Step

NODE = "perf-intel-6.perf.eng.bos2.dc.redhat.com"
NODES = f"""
driver: "550.54.15"
cuda: "12.4"
nodes:
- name: {NODE}
  gpus: [{{model: A100-PCIE-40GB, count: 2}}]
"""
DEFAULTS = "Defaults of the policy"
REPLICAS = "Eight devices"
MACHINE = "The machine's own figures"
PODS = "Pods of the operator"
RATE = "The rate of a program"
SCC = "SecurityContextConstraints"
BUSY = "Pods that use GPUs stay"
PROFILES = "Profiles before MIG is enabled"
UNSET = "Labels of MIG before it is used"
DRIVER = "Upgrades of the driver"
DOUBLED = "Four MIG devices"
TWO = "The second GPU"
NAMESPACE = "The namespace model-serving-test"
ORDER = "MPS after MIG"
MEMORY = "Memory of contexts"
LOG = "The log of MPS"
RENAMED = "The name of MPS devices"
CAPACITY = f"kubectl get node {NODE} -o json | jq .status.capacity"
MPS_COMMANDS = r"(?s)set_default_device_pinned_mem_limit 0 4096M.*set_default_active_thread_percentage 10"

SCRIPT: list[Step | Adds] = [
    Runs("NODE=perf-intel-6", shows="nvidia.com/gpu.product=NVIDIA-A100-PCIE-40GB"),
    Runs("cat << EOF | kubectl apply"),
    Runs("oc patch clusterpolicy"),
    Prints(
        "devicePlugin:",
        differs={"default: ''": DEFAULTS, "enabled: true": DEFAULTS, "mps:": DEFAULTS, "root: ": DEFAULTS},
        whole=False,
        of="oc get clusterpolicy gpu-cluster-policy -o yaml",
    ),
    Runs("oc label"),
    Runs("oc get node", shows='"nvidia.com/gpu": "20"'),
    Prints(
        "{\n",
        differs={'"nvidia.com/gpu": "8"': REPLICAS, '"(cpu|ephemeral-storage|hugepages.*|memory|pods)"': MACHINE},
        more={'"nvidia.com/gpu": "20"': REPLICAS, '"(cpu|memory|pods)"': MACHINE, '"0"': MACHINE},
    ),
    Runs("cat << EOF | kubectl create"),
    Session(
        "pod/command-nvidia-smi created",
        differs={"39023MiB": MACHINE},
        more={" 0MiB / 40960MiB": MACHINE, "No running processes found": "The empty list of processes"},
    ),
    Runs("cat << EOF | kubectl apply"),
    Session("ccamacho@guateque:~/dev$ kubectl get pods", differs={"Pending": REPLICAS}, more={"Running": REPLICAS}),
    Reads("oc adm policy", SCC),
    Prints(
        "Skipping CreateDcgmGroups",
        differs={"gflops": RATE},
        more={"gflops": RATE},
        whole=False,
        of="kubectl logs deploy/nvidia-plugin-test",
    ),
    Runs("oc rsh", "nvidia-smi", PODS),
    Runs("oc rsh", "nvidia-smi mig -lgip; lamina mig profiles", PROFILES, shows="3g.20gb"),
    Runs("oc rsh", "nvidia-smi mig -lgi", PODS, shows="No MIG-enabled devices found"),
    Runs("kubectl get node -o json"),
    Prints(".\n.", differs={r"mig.(config|strategy)": UNSET}, whole=False),
    Runs("cat << EOF | kubectl apply"),
    Runs("oc patch clusterpolicy gpu-cluster-policy"),
    Runs("oc label"),
    Runs("STRATEGY=mixed"),
    Runs("NODE_NAME=perf"),
    Adds("lamina mig list; lamina doctor", BUSY, shows="nvidia-plugin-test"),
    Adds("kubectl delete deployment nvidia-plugin-test", BUSY),
    Runs("oc -n nvidia-gpu-operator logs", "lamina mig list", PODS, shows="success"),
    Runs("oc rsh", "nvidia-smi mig -lgi", PODS, shows="3g.20gb"),
    Prints("+-----", more={r"\| 1 MIG": TWO, r"^\+-+\+$": TWO}),
    Runs("kubectl describe nodes", shows=r"nvidia.com/mig-3g.20gb: +8"),
    Prints(
        "nvidia.com/mig-3g.20gb.slices.gi",
        differs={"gpu-driver-upgrade-enabled": DRIVER, "mig-3g.20gb: 4": DOUBLED},
        more={"mig-3g.20gb: 8": DOUBLED},
        whole=False,
    ),
    Adds("kubectl create namespace model-serving-test", NAMESPACE),
    Runs("cat << EOF | kubectl apply"),
    Prints("GPU 0:", of="kubectl logs -n model-serving-test test-1"),
    Runs("cat << EOF | kubectl apply"),
    Runs("oc patch clusterpolicy"),
    Adds("lamina doctor", ORDER, shows="mig-strategy=mixed is not supported with MPS"),
    Adds("kubectl delete pod -n model-serving-test test-1 --ignore-not-found", ORDER),
    Adds("kubectl label node $NODE --overwrite nvidia.com/mig.config=all-disabled", ORDER),
    Adds(
        "oc patch clusterpolicy gpu-cluster-policy --type=json "
        """-p='[{"op": "replace", "path": "/spec/mig/strategy", "value": "single"}]'""",
        ORDER,
    ),
    Runs("oc label"),
    Runs("oc get node", CAPACITY, RENAMED, shows='"nvidia.com/gpu": "20"'),
    Runs("kubectl describe node", shows="nvidia.com/mps.capable=true"),
    Prints("nvidia.com/gpu.sharing-strategy", whole=False),
    Runs("pod_name=", "cat {mps}/*/log/control.log", LOG, shows=MPS_COMMANDS),
    Reads("nvidia-device-plugin-mps-control-daemon", LOG),
    Runs("kubectl describe nodes"),
    Prints(
        "nvidia.com/device-plugin.config",
        differs={"gpu.shared": RENAMED, "^nvidia.com/gpu(:|$)": RENAMED, "gpu.product": RENAMED},
        whole=False,
    ),
    Runs("cat << EOF | kubectl create"),
    Runs("cat << EOF | kubectl create"),
    Runs("sudo chroot", "nvidia-smi", PODS, shows="M.C .*dcgmproftester12"),
    Prints(
        "sudo chroot",
        differs={"^sudo chroot": PODS, r"\d+MiB /": MEMORY, "30MiB": MEMORY, "456MiB": MEMORY},
        more={r"\d+MiB /": MEMORY, "412MiB": MEMORY, "133MiB": MEMORY},
    ),
    Runs("cat << EOF | kubectl apply"),
    Runs("kubectl get pods --all-namespaces", shows="default.*nvidia-plugin-test"),
    Adds("kubectl delete deployment nvidia-plugin-test", BUSY),
    Adds("kubectl delete pods --all; kubectl delete pods --all -n nvidia-gpu-operator", BUSY),
    Runs("oc get clusterpolicies"),
    Runs("kubectl label --list nodes", shows=r"gpu.product=NVIDIA-A100-PCIE-40GB\n"),
]
