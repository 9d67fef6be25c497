"""`lamina doctor`: each thing that can be missing is found and comes with how to fix it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import structs

from lamina.core.gpus import ExistingMigInstance, Inventory, MigDeviceCount, Mode, NativeResource, RefusedConfiguration
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.sharing import Strategy
from lamina.errors import Outside
from lamina.install.names import chosen
from lamina.operations.doctor.checks import configurations_of_nodes
from lamina.operations.doctor.finding import State
from lamina.ports.kube import NODES, PODS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource
from tests.cli.doctor_patient import INFO, TICKETS, Patient

REFUSED = RefusedConfiguration(source="ConfigMap a/b", reason="it is bad; the previous one stays", since=1_000_000_000)
REFUSING = Inventory(node="n", driver="550.54", refused=(REFUSED,))


async def test_s1_9_all_is_well() -> None:
    found = await Patient().findings()
    assert found["agents"].found == "1 node has published an inventory"
    assert {one.state for one in found.values()} == {State.OK}
    assert {"webhook", "agents", "n: driver", "n: Kubernetes", "n: container runtime", "n: kernel"} <= found.keys()
    assert {"n: GPUs", "n: kubelet", "other device plugins", "scheduler"} <= found.keys()


@pytest.mark.parametrize(
    ("field", "value", "what", "sentence"),
    [
        ("inventory", Inventory(node="n", driver="418.87"), "n: driver", "too old"),
        ("inventory", Inventory(node="n"), "n: driver", "none is too old"),
        ("info", INFO | {"kubeletVersion": "v1.19.16-eks-1"}, "n: Kubernetes", "v1.19.16-eks-1 is too old"),
        ("info", INFO | {"containerRuntimeVersion": "docker://24.0.7"}, "n: container runtime", "docker does not"),
        ("info", INFO | {"containerRuntimeVersion": "containerd://1.6.9"}, "n: container runtime", "1.6.9 is too old"),
        ("info", INFO | {"kernelVersion": "3.10.0-1160.el7"}, "n: kernel", "too old"),
        ("inventory", None, "agents", "nodes with GPUs but no agent: n"),
        ("allocatable", TICKETS | {"nvidia.com/gpu": "0"}, "n: kubelet", "it does not report nvidia.com/gpu"),
        ("registered", False, "webhook", "not registered"),
        ("refusal", None, "webhook", "an invalid pod was admitted"),
        ("refusal", Outside("failed calling webhook: connection refused"), "webhook", "connection refused"),
        ("images", {"a": "nvcr.io/nvidia/k8s-device-plugin"}, "other device plugins", "default/a"),
        ("images", {"gpu-manager-x7": "mirror/plugin"}, "other device plugins", "default/gpu-manager-x7"),
        ("images", {"p": "projecthami/hami-vgpu:v2"}, "other device plugins", "default/p"),
        ("images", {"hami-scheduler-0": "h"}, "other schedulers", "is also served by default/hami-sch"),
        ("images", {"s": "volcanosh/vc-scheduler:v1"}, "other schedulers", "volcano is also served by default/s"),
        ("inventory", REFUSING, "configuration of nodes", "ConfigMap a/b, on n since 2001-09-09T01:46:40Z"),
        ("placed", False, "scheduler", "no scheduler is serving schedulerName hami-scheduler"),
    ],
)  # fmt: skip
async def test_s1_9_what_is_missing_is_found(field: str, value: object, what: str, sentence: str) -> None:
    patient = Patient()
    setattr(patient, field, value)
    found = (await patient.findings())[what]
    assert found.state is State.FAILED
    assert sentence in found.found
    assert found.fix


@pytest.mark.parametrize("version", ["19.3.13", "25.0.0"])
async def test_docker_below_kubelet_is_refused_with_what_to_use(version: str) -> None:
    """Kubernetes 1.20 often has it. Newer versions read CDI specs for their own users only."""
    patient = Patient()
    patient.info = INFO | {"kubeletVersion": "v1.20.4", "containerRuntimeVersion": f"docker://{version}"}
    found = (await patient.findings())["n: container runtime"]
    assert (found.state, found.found) == (
        State.FAILED,
        "docker does not give containers of kubelet CDI devices, by which shares get their GPU and limits",
    )
    for word in ("containerd 1.7", "CRI-O 1.23", "NVIDIA's runtime", "--container-runtime-endpoint"):
        assert word in found.fix


async def test_a_scheduler_that_lacks_the_current_names_is_a_finding_with_its_fix() -> None:
    """It places such pods by itself, and no one grants them anything."""
    patient = Patient()
    patient.granted = False
    found = (await patient.findings())["scheduler"]
    assert (found.state, found.found) == (
        State.FAILED,
        "scheduled without Lamina's extender, so they cannot start: default/job",
    )
    assert "kubectl -n lamina-system rollout restart deployment/lamina-scheduler" in found.fix
    patient = Patient()
    patient.granted = False
    plain = (NativeResource("nvidia.com/gpu", 4, 4, Strategy.TIME_SLICING),)
    patient.inventory = Inventory(node="n", driver="535.104.05", gpus=(patient.gpu,), native_resources=plain)
    assert (await patient.findings())["scheduler"].state is State.OK, "kubelet allocates GPUs there"


async def test_a_driver_of_440_is_old_enough_to_fail_and_newer_is_not() -> None:
    for driver, state in (("440.33", State.FAILED), ("440", State.FAILED), ("450.80.02", State.OK)):
        patient = Patient()
        patient.inventory = Inventory(node="n", driver=driver, gpus=(patient.gpu,))
        assert (await patient.findings())["n: driver"].state is state


@pytest.mark.parametrize(
    ("resource", "gpus", "state", "found"),
    [
        ("nvidia.com/mig-1g.5gb", 0, State.OK, "7 MIG devices offered and healthy"),
        ("nvidia.com/mig-1g.5gb", 1, State.OK, "1 GPU and 7 MIG devices offered and healthy"),
        ("", 0, State.WARNING, "none is offered"),
    ],
)
async def test_mig_devices_that_are_offered_count(resource: str, gpus: int, state: State, found: str) -> None:
    patient = Patient()
    devices = MigDeviceCount(profile="1g.5gb", count=7, resource=resource)
    patient.inventory = Inventory(node="n", driver="535.1", gpus=(patient.gpu,)[:gpus], mig_devices=(devices,))
    finding = (await patient.findings())["n: GPUs"]
    assert (finding.state, finding.found) == (state, found)


async def test_unhealthy_gpus_are_findings_with_their_reason() -> None:
    patient = Patient()
    sick = msgspec.structs.replace(patient.gpu, healthy=False, reason="the driver reported XID 79")
    patient.inventory = Inventory(node="n", driver="535.1", gpus=(sick,))
    assert "GPU 0: the driver reported XID 79" in (await patient.findings())["n: GPUs"].found


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        (MpsState.READY, "", (State.OK, "1 GPU is served")),
        (
            MpsState.WAITING,
            "process 7 is using the GPU",
            (State.FAILED, "GPU-0 is waiting: process 7 is using the GPU"),
        ),
    ],
)
async def test_mps_daemons_are_findings_with_their_state(
    state: MpsState, reason: str, expected: tuple[State, str]
) -> None:
    patient = Patient()
    daemon = MpsDaemon(gpu="GPU-0", state=state, reason=reason)
    patient.inventory = Inventory(node="n", driver="535.104.05", gpus=(patient.gpu,), mps=(daemon,))
    found = (await patient.findings())["n: MPS"]
    assert (found.state, found.found) == expected


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((), (State.OK, "instances for grants: GPU 0 has 1g.5gb at 6")),
        (("GPU 0 keeps 1g.5gb at 6: in use",), (State.WARNING, "GPU 0 keeps 1g.5gb at 6: in use")),
    ],
)
async def test_s1_3_instances_of_grants_and_leftovers_are_findings(
    left: tuple[str, ...], expected: tuple[State, str]
) -> None:
    patient = Patient()
    partitioned = structs.replace(
        patient.gpu,
        mig_enabled=True,
        modes=(Mode.MIG,),
        instances=(ExistingMigInstance(profile="1g.5gb", start=6, made=True),),
    )
    patient.inventory = Inventory(node="n", driver="535.104.05", gpus=(partitioned,), mig_leftovers=left)
    found = (await patient.findings())["n: MIG"]
    assert (found.state, found.found) == expected


async def test_a_new_pod_is_no_finding_about_the_scheduler() -> None:
    patient = Patient()
    patient.placed = False
    found = await patient.findings(Late(patient.kube))
    assert found["scheduler"].state is State.OK
    assert found["scheduler"].found == "not verified, because no pod that requests a GPU is scheduled yet"


async def test_a_healthy_cluster_without_pods_has_no_warning() -> None:
    """It is the state right after an installation, in which the guide runs the command."""
    patient = Patient()
    patient.with_job = False
    found = await patient.findings()
    assert {finding.state for finding in found.values()} == {State.OK}
    assert "no pod that requests a GPU exists yet" in found["scheduler"].found


class Late:
    """The same cluster, in which all pods came this very moment."""

    def __init__(self, kube: FakeKube) -> None:
        self._kube = kube

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._kube, verb)

    async def list(self, resource: Resource, **named: Any) -> Any:
        found = await self._kube.list(resource, **named)
        for each in found.items if resource == PODS else ():
            each["metadata"]["creationTimestamp"] = datetime.now(UTC).isoformat()
        return found


async def test_the_trial_pod_does_not_stay() -> None:
    patient = Patient()
    patient.refusal = None
    await patient.findings()
    assert {pod["metadata"]["name"] for pod in (await patient.kube.list(PODS)).items} == {"web", "job"}


async def test_disabled_parts_are_reported() -> None:
    patient = Patient()
    patient.text = "enabled: false"
    assert (await patient.findings())["webhook"].state is State.WARNING


@pytest.mark.parametrize("mark", ["nvidia.com/gpu.deploy.device-plugin", "lamina.dev/agent"])
async def test_nodes_of_others_are_nobodys_trouble(mark: str) -> None:
    patient = Patient()
    value = "true" if mark.startswith("nvidia") else "false"
    labels = {"nvidia.com/gpu.present": "true", mark: value}
    await patient.kube.create(NODES, {"metadata": {"name": "theirs", "labels": labels}, "status": {"nodeInfo": INFO}})
    spec = {"nodeName": "theirs", "containers": [{"name": "main", "image": "nvcr.io/nvidia/k8s-device-plugin"}]}
    await patient._pod("nvidia-device-plugin", spec)
    found = await patient.findings()
    assert {one.state for one in found.values()} == {State.OK}
    assert found["excluded nodes"].found == "nodes with GPUs that Lamina does not serve: theirs"
    assert mark in found["excluded nodes"].fix


def test_one_refusal_of_many_nodes_is_one_row() -> None:
    late = structs.replace(REFUSED, since=REFUSED.since + 60)
    inventories = [Inventory(node=f"n{i}", refused=(late if i else REFUSED,)) for i in range(7)]
    other = Inventory(node="o", refused=(structs.replace(REFUSED, source="label nvidia.com/mig.config=all-9g"),))
    many, one = configurations_of_nodes([*inventories, other])
    assert many.found.startswith(
        "ConfigMap a/b, on n0, n1, n2, n3, n4 and 2 more nodes since 2001-09-09T01:46:40Z: it is"
    )
    assert one.found.startswith("label nvidia.com/mig.config=all-9g, on o since ")
    assert many.state is one.state is State.FAILED


async def test_a_cluster_without_any_label_gets_a_list_of_labels() -> None:
    patient = Patient()
    patient.inventory, patient.labels = None, {}
    assert "gpu=on" in (await patient.findings())["agents"].fix


async def test_other_plugins_are_findings_with_their_node_and_the_fix() -> None:
    patient = Patient()
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "nvcr.io/nvidia/k8s-device-plugin"}]}
    await patient._pod("nvidia-device-plugin-x", spec)
    found = (await patient.findings())["other device plugins"]
    assert found.found == "default/nvidia-device-plugin-x on n"
    assert "kubectl label node n nvidia.com/gpu.deploy.device-plugin=false --overwrite" in found.fix


async def test_a_scheduler_of_others_is_no_trouble_under_another_name() -> None:
    patient = Patient()
    patient.images = {"volcano-scheduler-0": "volcanosh/vc-scheduler"}
    patient.text = "schedulers: {served: [hami-scheduler]}"
    assert "other schedulers" not in await patient.findings()


def webhooks(name: str, hook: str, *resources: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": [{"name": hook, "rules": [{"resources": list(resources)}]}]}


async def test_other_webhooks_that_change_pods_with_gpus_are_findings() -> None:
    patient = Patient()
    patient.webhooks = [
        webhooks("hami-webhook", "vgpu.hami.io", "pods"),
        webhooks("mesh", "inject.example.com", "pods"),
        webhooks("vgpu-nodes", "vgpu.example.com", "nodes"),
    ]
    found = (await patient.findings())["other webhooks"]
    assert (found.state, found.found) == (
        State.WARNING,
        "they also change pods with GPUs: hami-webhook (vgpu.hami.io)",
    )


@pytest.mark.parametrize(
    ("hook", "fix"),
    [("vgpu.hami.io", "vgpu.hami.io is not Lamina's"), ("pods.lamina.dev", "the logs of the controller")],
)
async def test_a_webhook_that_does_not_answer_is_named_with_its_owner(hook: str, fix: str) -> None:
    patient = Patient()
    patient.refusal = Outside(f'failed calling webhook "{hook}": connection refused')
    found = (await patient.findings())["webhook"]
    assert found.state is State.FAILED
    assert fix in found.fix


def condition(kind: str, status: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "message": message}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


@pytest.mark.parametrize(
    ("status", "output"),
    [
        ({"conditions": [condition("Ready", "True")]}, ""),
        ({"conditions": [condition("PodScheduled", "False", "0/1 nodes")]}, "not scheduled: 0/1 nodes"),
        ({"containerStatuses": [waits("ImagePullBackOff", "no such image")]}, "ImagePullBackOff: no such image"),
        ({"initContainerStatuses": [waits("CrashLoopBackOff")]}, "CrashLoopBackOff"),
        ({"containerStatuses": [waits("ContainerCreating")]}, "starting"),
        ({"conditions": [condition("Ready", "False")], "containerStatuses": [{"state": {}}]}, "not ready"),
        ({}, "not ready"),
    ],
)
async def test_pods_of_components_are_findings_with_what_blocks_them(status: dict[str, Any], output: str) -> None:
    patient = Patient()
    labels = {"app.kubernetes.io/part-of": "lamina"}
    meta = {"name": "lamina-controller-0", "namespace": "lamina-system", "labels": labels}
    body = {"metadata": meta, "spec": {"containers": []}, "status": status}
    await patient.kube.create(PODS, body)
    found = (await patient.findings())["pods of Lamina"]
    assert found.state is (State.FAILED if output else State.OK)
    assert found.found == (f"lamina-controller-0: {output}" if output else "1 of 1 ready")


@pytest.mark.parametrize("outdated", [False, True])
async def test_an_mps_service_that_an_upgrade_left_is_named(outdated: bool) -> None:
    patient = Patient()
    for part, image in (("agent", "lamina:2"), ("mps", "lamina:1" if outdated else "lamina:2")):
        labels = {"app.kubernetes.io/part-of": "lamina"} | chosen(f"lamina-{part}")
        meta = {"name": f"lamina-{part}-0", "namespace": "lamina-system", "labels": labels}
        spec = {"nodeName": "n", "containers": [{"image": image}]}
        await patient.kube.create(PODS, {"metadata": meta, "spec": spec})
    found = (await patient.findings()).get("MPS service")
    assert (found is not None) is outdated
    if found is not None:
        assert (found.state, found.found) == (State.WARNING, "n has lamina:1, and its agent lamina:2")


async def test_a_pod_that_keeps_tickets_without_a_grant_is_named() -> None:
    patient = Patient()
    assert (await patient.findings())["tickets"].state is State.OK
    patient = Patient()
    asks = {"resources": {"limits": {"nvidia.com/gpu": 10}}}
    spec = {"nodeName": "n", "schedulerName": "mine", "containers": [{"name": "main", **asks}]}
    meta = {"name": "culprit", "namespace": "team"}
    await patient.kube.create(PODS, {"metadata": meta, "spec": spec})
    found = (await patient.findings())["tickets"]
    assert found.state is State.FAILED
    assert "team/culprit has 10 nvidia.com/gpu of node n" in found.found and "job" not in found.found
