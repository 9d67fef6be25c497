"""`lamina doctor`: each thing that can be missing is found and comes with how to mend it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import structs

from lamina.cli.doctor import examine
from lamina.cli.finding import Finding, State
from lamina.control import crds
from lamina.control.webhook_configuration import webhook_configuration
from lamina.dialects import config
from lamina.errors import Outside
from lamina.model.gpus import Gpu, InstanceThere, Inventory, Mode, Plain
from lamina.model.grants import Grant, grant_name
from lamina.model.mps import MpsDaemon, MpsState
from lamina.model.sharing import Strategy
from lamina.ports.kube import CONFIG_MAPS, GRANTS, INVENTORIES, MUTATING_WEBHOOKS, NODES, PODS, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource

INFO = {
    "kubeletVersion": "v1.31.2",
    "containerRuntimeVersion": "containerd://1.7.22",
    "kernelVersion": "5.15.0-112-generic",
}
TICKETS = {"nvidia.com/gpu": "10", "volcano.sh/vgpu-number": "10", "volcano.sh/gpu-mem.128Mi": "120"}
REFUSAL = Refused("nvidia.com/gpumem-percentage is 500; allowed are 1 to 100")


class Patient:
    """A cluster of one node in which all is well, until a test spoils something."""

    def __init__(self) -> None:
        self.kube = FakeKube()
        self.gpu = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)
        self.inventory: Inventory | None = Inventory(node="n", driver="535.104.05", gpus=(self.gpu,))
        self.info, self.allocatable, self.labels = dict(INFO), dict(TICKETS), {"nvidia.com/gpu.present": "true"}
        self.refusal: Outside | None = REFUSAL
        self.registered = self.placed = self.granted = True
        self.images = {"web": "nginx"}
        self.webhooks: list[dict[str, Any]] = []
        self.text = ""

    async def findings(self, door: Any = None) -> dict[str, Finding]:
        """What the doctor finds, through another door to the same cluster if there is one."""
        kube = self.kube
        await crds.apply(kube)
        if self.registered:
            await kube.create(MUTATING_WEBHOOKS, webhook_configuration(config.DEFAULT, {"url": "https://x"}, b"ca"))
        for each in self.webhooks:
            await kube.create(MUTATING_WEBHOOKS, each)
        meta: dict[str, Any] = {"name": "lamina", "namespace": "lamina-system"}
        await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": self.text}})
        node = {"metadata": {"name": "n", "labels": self.labels}}
        await kube.create(NODES, node | {"status": {"nodeInfo": self.info, "allocatable": self.allocatable}})
        if self.inventory is not None:
            await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": msgspec.to_builtins(self.inventory)})
        for name, image in self.images.items():
            await self._pod(name, {"containers": [{"name": "main", "image": image}]})
        asks = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
        spec = {"schedulerName": "hami-scheduler", "containers": [{"name": "main", "image": "cuda", **asks}]}
        uid = await self._pod("job", spec | ({"nodeName": "n"} if self.placed else {}))
        if self.placed and self.granted:
            grant = Grant(pod="job", pod_uid=uid, node="n", dialect="hami", containers=())
            meta = {"name": grant_name("job", uid), "namespace": "default"}
            await kube.create(GRANTS, {"metadata": meta, "spec": msgspec.to_builtins(grant)})
        kube.failing["create"] = self._trial
        return {finding.what: finding for finding in await examine(door or kube)}

    async def _pod(self, name: str, spec: dict[str, Any]) -> str:
        made = await self.kube.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        uid: str = made["metadata"]["uid"]
        return uid

    def _trial(self, resource: Resource, name: str) -> Outside | None:
        return self.refusal if (resource, name) == (PODS, "lamina-doctor") else None


async def test_s1_9_all_is_well() -> None:
    found = await Patient().findings()
    assert found["agents"].found == "1 node has published what it has"
    assert {one.state for one in found.values()} == {State.OK}
    assert {"webhook", "agents", "n: driver", "n: Kubernetes", "n: container runtime", "n: kernel"} <= found.keys()
    assert {"n: GPUs", "n: kubelet", "other device plugins", "scheduler"} <= found.keys()


@pytest.mark.parametrize(
    ("field", "value", "what", "sentence"),
    [
        ("inventory", Inventory(node="n", driver="418.87"), "n: driver", "too old"),
        ("inventory", Inventory(node="n"), "n: driver", "none is too old"),
        ("info", INFO | {"kubeletVersion": "v1.19.16-eks-1"}, "n: Kubernetes", "v1.19.16-eks-1 is too old"),
        ("info", INFO | {"containerRuntimeVersion": "docker://24.0.7"}, "n: container runtime", "docker does not read"),
        ("info", INFO | {"containerRuntimeVersion": "containerd://1.6.9"}, "n: container runtime", "1.6.9 is too old"),
        ("info", INFO | {"kernelVersion": "3.10.0-1160.el7"}, "n: kernel", "too old"),
        ("inventory", None, "agents", "nodes with GPUs and without an agent: n"),
        ("allocatable", TICKETS | {"nvidia.com/gpu": "0"}, "n: kubelet", "it counts no nvidia.com/gpu"),
        ("registered", False, "webhook", "not registered"),
        ("refusal", None, "webhook", "nonsense was admitted"),
        ("refusal", Outside("failed calling webhook: connection refused"), "webhook", "connection refused"),
        ("images", {"a": "nvcr.io/nvidia/k8s-device-plugin"}, "other device plugins", "default/a"),
        ("images", {"gpu-manager-x7": "mirror/plugin"}, "other device plugins", "default/gpu-manager-x7"),
        ("images", {"p": "projecthami/hami-vgpu:v2"}, "other device plugins", "default/p"),
        ("images", {"hami-scheduler-0": "h"}, "other schedulers", "of hami-scheduler are placed by default/hami-sch"),
        ("images", {"s": "volcanosh/vc-scheduler:v1"}, "other schedulers", "pods of volcano are placed by default/s"),
        ("placed", False, "scheduler", "nobody has looked at pods of hami-scheduler"),
    ],
)  # fmt: skip
async def test_s1_9_what_is_missing_is_found(field: str, value: object, what: str, sentence: str) -> None:
    patient = Patient()
    setattr(patient, field, value)
    found = (await patient.findings())[what]
    assert found.state is State.FAILED
    assert sentence in found.found
    assert found.mend


async def test_a_scheduler_that_does_not_know_the_names_in_force_is_told_with_what_mends_it() -> None:
    """It places such pods by itself, and nobody grants them anything."""
    patient = Patient()
    patient.granted = False
    found = (await patient.findings())["scheduler"]
    assert (found.state, found.found) == (
        State.FAILED,
        "placed without asking Lamina, so that they get no GPU: default/job",
    )
    assert "kubectl -n lamina-system rollout restart deployment/lamina-scheduler" in found.mend
    patient = Patient()
    patient.granted = False
    plain = (Plain("nvidia.com/gpu", 4, 4, Strategy.TIME_SLICING),)
    patient.inventory = Inventory(node="n", driver="535.104.05", gpus=(patient.gpu,), plain=plain)
    assert (await patient.findings())["scheduler"].state is State.WARNING, "kubelet gives out GPUs there"


async def test_a_driver_of_440_is_old_enough_to_fail_and_newer_is_not() -> None:
    for driver, state in (("440.33", State.FAILED), ("440", State.FAILED), ("450.80.02", State.OK)):
        patient = Patient()
        patient.inventory = Inventory(node="n", driver=driver, gpus=(patient.gpu,))
        assert (await patient.findings())["n: driver"].state is state


async def test_sick_gpus_are_told_with_their_reason() -> None:
    patient = Patient()
    sick = msgspec.structs.replace(patient.gpu, healthy=False, reason="the driver reported XID 79")
    patient.inventory = Inventory(node="n", driver="535.1", gpus=(sick,))
    assert "GPU 0: the driver reported XID 79" in (await patient.findings())["n: GPUs"].found


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        (MpsState.READY, "", (State.OK, "daemons serve 1 GPU")),
        (
            MpsState.WAITING,
            "process 7 is using the GPU",
            (State.FAILED, "GPU-0 is waiting: process 7 is using the GPU"),
        ),
    ],
)
async def test_daemons_of_mps_are_told_with_their_state(
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
        ((), (State.OK, "instances by grants: GPU 0 has 1g.5gb at 6")),
        (("GPU 0 keeps 1g.5gb at 6: in use",), (State.WARNING, "GPU 0 keeps 1g.5gb at 6: in use")),
    ],
)
async def test_s1_3_what_grants_have_cut_and_what_cannot_go_is_told(
    left: tuple[str, ...], expected: tuple[State, str]
) -> None:
    patient = Patient()
    cut = structs.replace(
        patient.gpu,
        mig_enabled=True,
        modes=(Mode.MIG,),
        instances=(InstanceThere(profile="1g.5gb", start=6, made=True),),
    )
    patient.inventory = Inventory(node="n", driver="535.104.05", gpus=(cut,), mig_left=left)
    found = (await patient.findings())["n: MIG"]
    assert (found.state, found.found) == expected


async def test_a_pod_that_just_came_tells_nothing_of_the_scheduler() -> None:
    patient = Patient()
    patient.placed = False
    found = await patient.findings(Late(patient.kube))
    assert found["scheduler"].state is State.WARNING


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


async def test_what_was_switched_off_is_said() -> None:
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
    assert found["nodes of others"].found == "nodes with GPUs that are kept out: theirs"
    assert mark in found["nodes of others"].mend


async def test_a_cluster_without_any_label_is_told_which_there_are() -> None:
    patient = Patient()
    patient.inventory, patient.labels = None, {}
    assert "gpu=on" in (await patient.findings())["agents"].mend


async def test_plugins_of_others_are_told_with_their_node_and_the_command_that_mends_it() -> None:
    patient = Patient()
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "nvcr.io/nvidia/k8s-device-plugin"}]}
    await patient._pod("nvidia-device-plugin-x", spec)
    found = (await patient.findings())["other device plugins"]
    assert found.found == "default/nvidia-device-plugin-x on n"
    assert "kubectl label node n nvidia.com/gpu.deploy.device-plugin=false --overwrite" in found.mend


async def test_a_scheduler_of_others_is_no_trouble_under_another_name() -> None:
    patient = Patient()
    patient.images = {"volcano-scheduler-0": "volcanosh/vc-scheduler"}
    patient.text = "schedulers: [hami-scheduler]"
    assert "other schedulers" not in await patient.findings()


def webhooks(name: str, hook: str, *resources: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": [{"name": hook, "rules": [{"resources": list(resources)}]}]}


async def test_webhooks_of_others_that_change_pods_with_gpus_are_told() -> None:
    patient = Patient()
    patient.webhooks = [
        webhooks("hami-webhook", "vgpu.hami.io", "pods"),
        webhooks("mesh", "inject.example.com", "pods"),
        webhooks("vgpu-nodes", "vgpu.example.com", "nodes"),
    ]
    found = (await patient.findings())["other webhooks"]
    assert (found.state, found.found) == (
        State.WARNING,
        "they change pods with GPUs too: hami-webhook (vgpu.hami.io)",
    )


@pytest.mark.parametrize(
    ("hook", "mend"),
    [("vgpu.hami.io", "vgpu.hami.io is not Lamina's"), ("pods.lamina.dev", "the log of `lamina control`")],
)
async def test_a_webhook_that_does_not_answer_is_told_by_whose_it_is(hook: str, mend: str) -> None:
    patient = Patient()
    patient.refusal = Outside(f'failed calling webhook "{hook}": connection refused')
    found = (await patient.findings())["webhook"]
    assert found.state is State.FAILED
    assert mend in found.mend


def condition(kind: str, status: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "message": message}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"conditions": [condition("Ready", "True")]}, ""),
        ({"conditions": [condition("PodScheduled", "False", "0/1 nodes")]}, "on no node: 0/1 nodes"),
        ({"containerStatuses": [waits("ImagePullBackOff", "no such image")]}, "ImagePullBackOff: no such image"),
        ({"initContainerStatuses": [waits("CrashLoopBackOff")]}, "CrashLoopBackOff"),
        ({"containerStatuses": [waits("ContainerCreating")]}, "it is starting"),
        ({"conditions": [condition("Ready", "False")], "containerStatuses": [{"state": {}}]}, "it is not ready"),
        ({}, "it is not ready"),
    ],
)
async def test_pods_of_our_parts_are_told_with_what_keeps_them(status: dict[str, Any], said: str) -> None:
    patient = Patient()
    labels = {"app.kubernetes.io/part-of": "lamina"}
    meta = {"name": "lamina-control-0", "namespace": "lamina-system", "labels": labels}
    body = {"metadata": meta, "spec": {"containers": []}, "status": status}
    await patient.kube.create(PODS, body)
    found = (await patient.findings())["pods of Lamina"]
    assert found.state is (State.FAILED if said else State.OK)
    assert found.found == (f"lamina-control-0: {said}" if said else "1 of 1 are ready")
