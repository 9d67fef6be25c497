"""4paradigm, functional test of k8s-vgpu-scheduler."""

from tests.scenarios.documents.steps import Adds, Applies, Edits, Reads, Runs, Saves, Session, Step

NODES = """
driver: "515.86.01"
cuda: "11.7"
nodes:
- name: node-0
  gpus: [{model: V100-PCIE-32GB, count: 2}]
"""
WORDS = {"{nodeid}": "node-0", "vgpu-test.yaml <EOF": "vgpu-test.yaml <<EOF"}
DOCKER = "Docker"
HELM = "Helm commands"
HERE_DOCUMENT = "The here-document"
COMMANDS = "Commands that are left out"
PODS = "Names of pods"
LOG = "Lines of the library"
ERROR = "The error of a program"
PROGRAM = "The program of the image"
EXEC = "kubectl exec without --"
SCALING = (
    """kubectl patch configmap lamina -n lamina-system --type=merge -p '{"data": {"lamina.yaml": """
    """"devicePlugin: {deviceMemoryScaling: 3.0}"}}'"""
)
LINES = {r"^\[4pdvGPU": LOG}
MEMORY = "nvidia.com/gpumem"


def phases(running: int, pending: int) -> Adds:
    pattern = rf"^(?=(.*Running){{{running}}})(?!(.*Running){{{running + 1}}})"
    pattern += rf"(?=(.*Pending){{{pending}}})(?!(.*(Pending|ing  )){{{running + pending + 1}}})"
    return Adds("kubectl get pods -l app=vgpu-test", COMMANDS, shows=f"(?s){pattern}")


SCRIPT: list[Step | Adds] = [
    Reads("# 加入套件仓库", DOCKER),
    Reads('{\n    "default-runtime": "nvidia"', DOCKER),
    Runs("$ kubectl label nodes"),
    Runs("helm repo add", "true", HELM),
    Runs("kubectl version"),
    Runs("$ helm install vgpu", "true", HELM),
    Runs("cat > vgpu-test.yaml", because=HERE_DOCUMENT),
    Adds("kubectl apply -f vgpu-test.yaml", COMMANDS),
    phases(6, 4),
    Session("[root@cosmo-ai01 draven]# nvidia-smi"),
    Saves("apiVersion: apps/v1", "one.yaml"),
    Edits("修改yaml", "one.yaml", MEMORY),
    Adds("kubectl apply -f one.yaml", COMMANDS),
    phases(1, 0),
    Session(
        "(base) [root@cosmo-ai01 draven]# kubectl logs",
        instead={"kubectl logs vgpu-test-84d96dd8f6-x665s ": "kubectl logs deploy/vgpu-test"},
        because=PODS,
        differs=LINES
        | {r'^File "|^x = torch|TORCH_USE_CUDA_DSA': PROGRAM, "RuntimeError: CUDA error: unrecognized": ERROR},
        more={
            r"\[lamina\] Device 0 OOM 1559232512 / 1048576000": LOG,
            r'^File "|^sys\.exit|^\^+$|^check\(|^raise ': PROGRAM,
            "RuntimeError: CUDA error: out of memory": ERROR,
        },
    ),
    Adds("sed -i 's/gpumem: 1000/gpumem: 3000/' one.yaml; kubectl apply -f one.yaml", COMMANDS),
    phases(1, 0),
    Adds("kubectl logs deploy/vgpu-test", COMMANDS, shows="is on the GPU"),
    Session(
        "(base) [root@cosmo-ai01 draven]# kubectl logs",
        instead={"kubectl logs vgpu-test-698f587ff6-vckxd": "kubectl logs deploy/vgpu-test"},
        because=PODS,
        differs=LINES,
        more={"GPU is available|is on the GPU": PROGRAM},
    ),
    Runs("helm uninstall vgpu", "kubectl delete deployment vgpu-test", HELM),
    Runs("helm install vgpu", SCALING, HELM),
    Edits("修改yaml", "vgpu-test.yaml", MEMORY),
    Adds("kubectl apply -f vgpu-test.yaml", COMMANDS),
    Session("(base) [root@cosmo-ai01 draven]# kubectl get pods"),
    Session(
        "(base) [root@cosmo-ai01 draven]# kubectl exec",
        instead={
            "kubectl exec -it vgpu-test-f964c78fb-2qdp2 /bin/bash": "true",
            "nvidia-smi": "kubectl exec deploy/vgpu-test -- nvidia-smi",
        },
        because=EXEC,
        differs=LINES | {"DEPRECATED": EXEC},
    ),
    Applies("apiVersion: apps/v1"),
    phases(5, 0),
]
