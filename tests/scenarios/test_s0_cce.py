"""S0: Huawei CCE's "Using GPU Virtualization", with the manifests of that document as they stand."""

import json
import re
import textwrap

import pytest

from tests.scenarios import cce
from tests.scenarios.cce import APP, CORES, MEMORY, shares
from tests.scenarios.labs import Lab
from tests.scenarios.rows import TABLE
from tests.seeds import with_amount, with_replicas
from tests.waiting import wait_until

ROWS = TABLE["S0"]


memory_only = cce.memory_only
memory_and_compute = cce.memory_and_compute


def why(lab: Lab, selector: str = APP) -> str:
    waiting = next(pod for pod in lab.pods(selector) if pod["status"]["phase"] == "Pending")
    return lab.lamina("why", waiting["metadata"]["name"]).stdout


def another(manifest: str, name: str) -> str:
    """The same Deployment under another name and label."""
    return manifest.replace("gpu-app", name)


def refusal(lab: Lab, manifest: str) -> str:
    """What admission says to a pod of the Deployment's template."""
    lab.apply(manifest)

    def reported() -> str:
        sets = json.loads(lab.kubectl("get", "replicasets", "-l", APP, "-o", "json"))["items"]
        conditions = [each for one in sets for each in one["status"].get("conditions", [])]
        return next((each["message"] for each in conditions if each["type"] == "ReplicaFailure"), "")

    wait_until(lambda: bool(reported()), lambda: lab.kubectl("get", "replicasets", "-o", "yaml"))
    return reported()


globals().update(ROWS.tests)


def test_s0_3_more_memory_than_any_gpu_waits_and_the_reason_names_the_largest(lab: Lab, memory_only: str) -> None:
    lab.apply(with_amount(memory_only, MEMORY, 127))
    lab.settled(APP, {"Pending": 1})
    assert "needs 16256 MiB; the largest GPU has 16160 MiB" in why(lab)


@pytest.mark.parametrize(
    ("memory", "cores", "sentence"),
    [
        (40, 7, f"{CORES} must be a multiple of 5 from 5 to 100, got 7"),
        (40, 105, f"{CORES} must be a multiple of 5 from 5 to 100, got 105"),
        (0, 25, f"{MEMORY} must be an integer from 1 to 2147483647, got 0"),
    ],
)
def test_s0_4_refused_in_one_sentence(
    lab: Lab, memory_and_compute: str, memory: int, cores: int, sentence: str
) -> None:
    message = refusal(lab, with_amount(with_amount(memory_and_compute, MEMORY, memory), CORES, cores))
    assert sentence in message


def test_s0_4_compute_without_memory_is_refused(lab: Lab, memory_and_compute: str) -> None:
    without = re.sub(rf"^ *{re.escape(MEMORY)}.*\n", "", memory_and_compute, flags=re.MULTILINE)
    assert f"{CORES} requires memory; request {MEMORY} as well" in refusal(lab, without)


def test_s0_5_the_whole_card_is_the_pods_own(lab: Lab, memory_only: str) -> None:
    lab.apply(with_replicas(with_amount(memory_only, MEMORY, 126), 3))
    lab.settled(APP, {"Pending": 1, "Running": 2})
    assert [(share["exclusive"], share["memoryMiB"]) for share in shares(lab)] == [(True, 16160)] * 2
    assert "0MiB / 16160MiB" in lab.kubectl("exec", lab.running_pod(APP), "--", "nvidia-smi")


def test_s0_5_all_of_the_time_is_the_entire_gpu(lab: Lab, memory_and_compute: str) -> None:
    lab.apply(with_amount(memory_and_compute, CORES, 100))
    pod = lab.running_pod(APP)
    assert [(share["exclusive"], share["memoryMiB"]) for share in shares(lab)] == [(True, 16160)]
    assert "0MiB / 16160MiB" in lab.kubectl("exec", pod, "--", "nvidia-smi")
    assert "16160 MiB" in (shown := lab.lamina("pods").stdout) and "whole" in shown


def test_s0_6_at_most_twenty_on_a_gpu(lab: Lab, memory_only: str) -> None:
    lab.apply(with_replicas(with_amount(memory_only, MEMORY, 1), 41))
    lab.settled(APP, {"Pending": 1, "Running": 40})
    gpus = [share["gpu"] for share in shares(lab)]
    assert sorted(gpus.count(gpu) for gpu in set(gpus)) == [20, 20]
    assert "shared by 20 containers already" in why(lab)


def test_s0_7_one_isolation_on_a_gpu_at_a_time(lab: Lab, memory_only: str, memory_and_compute: str) -> None:
    lab.apply(memory_only)
    lab.running_pod(APP)
    lab.apply(with_replicas(another(with_amount(memory_and_compute, CORES, 20), "other"), 5))
    lab.settled("app=other", {"Pending": 2, "Running": 3})
    [memory_gpu], compute_gpus = {s["gpu"] for s in shares(lab)}, {s["gpu"] for s in shares(lab, "app=other")}
    assert memory_gpu not in compute_gpus
    assert "shared by containers without a share of its time" in why(lab, "app=other")


def test_s0_8_init_containers_are_refused(lab: Lab, memory_only: str) -> None:
    init = memory_only.replace("containers:", "initContainers:").replace("container-1", "early")
    manifest = init.replace(
        "      schedulerName", "      containers: [{name: main, image: busybox}]\n      schedulerName"
    )
    assert 'container "early": an init container cannot request' in refusal(lab, manifest)


def test_s0_9_managed_memory_counts_against_the_limit(lab: Lab, memory_only: str) -> None:
    """5120 MiB: a managed block within them is given, one that would go beyond is out of memory, error 2."""
    lab.apply(memory_only)
    pod = lab.running_pod(APP)
    program = textwrap.dedent("""
        import ctypes
        cuda, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(at), 0), cuda.cuCtxSetCurrent(at)
        block = lambda mib: cuda.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(mib << 20), 1)
        print(block(6000), block(4000), block(1000))
    """)
    assert lab.kubectl("exec", pod, "--", "python3", "-c", program) == "2 0 2\n"


def test_s0_10_whole_and_shared_gpus_are_never_the_same(lab: Lab, memory_only: str) -> None:
    whole = re.sub(rf"{re.escape(MEMORY)}: \d+", "nvidia.com/gpu: 1", another(memory_only, "whole"))
    lab.apply(whole)
    lab.running_pod("app=whole")
    lab.apply(with_replicas(memory_only, 4))
    lab.settled(APP, {"Pending": 1, "Running": 3})
    [whole_gpu] = {share["gpu"] for share in shares(lab, "app=whole")}
    assert whole_gpu not in {share["gpu"] for share in shares(lab)}


def test_s0_10_a_fraction_of_a_gpu_passes_the_api_server(lab: Lab, memory_only: str) -> None:
    deployment = re.sub(rf"{re.escape(MEMORY)}: \d+", "nvidia.com/gpu: 0.1", memory_only)
    template = textwrap.dedent(deployment.partition("  template:\n")[2])
    lab.apply("apiVersion: v1\nkind: Pod\n" + template.replace("metadata:", "metadata:\n  name: gpu-app"))
    pod = lab.running_pod(APP)
    assert [share["memoryMiB"] for share in shares(lab)] == [1616]
    assert re.search(r"0MiB / +1616MiB", lab.kubectl("exec", pod, "--", "nvidia-smi"))


def fraction(manifest: str, amount: str, replicas: int = 1) -> str:
    return with_replicas(re.sub(rf"{re.escape(MEMORY)}: \d+", f"nvidia.com/gpu: {amount}", manifest), replicas)


def state(lab: Lab) -> tuple[int, dict[str, str]]:
    """The Deployment's generation and what its template asks."""
    found = json.loads(lab.kubectl("get", "deployment", "gpu-app", "-o", "json"))
    [container] = found["spec"]["template"]["spec"]["containers"]
    return found["metadata"]["generation"], container["resources"]["limits"]


def memory_of_each(lab: Lab) -> list[int]:
    return [int(str(share["memoryMiB"])) for share in shares(lab)]


@pytest.mark.parametrize("way", [("apply",), ("apply", "--server-side")], ids=" ".join)
def test_s0_10_a_fraction_in_a_template_stays_as_it_is_until_it_is_changed(
    lab: Lab, memory_only: str, way: tuple[str, ...]
) -> None:
    def apply(manifest: str) -> None:
        lab.kubectl(*way, "-f", "-", stdin=manifest)

    def memory_is(*each: int) -> None:
        wait_until(lambda: memory_of_each(lab) == list(each), lambda: f"{memory_of_each(lab)}, expected {each}")

    first = fraction(memory_only, "0.1")
    apply(first)
    memory_is(1616)
    generation, asked = state(lab)
    assert asked == {"nvidia.com/gpu": "0", "lamina.dev/gpu-percentage": "10"}
    apply(first)
    assert lab.kubectl("diff", *way[1:], "-f", "-", stdin=first) == ""
    assert state(lab) == (generation, asked)
    lab.kubectl("scale", "deployment", "gpu-app", "--replicas=2")
    memory_is(1616, 1616)
    assert state(lab) == (generation + 1, asked)
    apply(fraction(memory_only, "0.25"))
    memory_is(4040)
    apply(fraction(memory_only, "1"))
    memory_is(16160)
    assert state(lab)[1] == {"nvidia.com/gpu": 1}
    apply(fraction(memory_only, "0.5"))
    apply(fraction(memory_only, "0.5").replace("nvidia.com/gpu: 0.5", "cpu: 1"))
    memory_is()
    assert state(lab)[1] == {"cpu": 1}


def test_s0_10_no_fraction_is_stored_that_admission_refuses_or_did_not_check(lab: Lab, memory_only: str) -> None:
    reported = lab.kubectl("apply", "-f", "-", stdin=fraction(memory_only, "0.125"), check=False)
    assert "must be an integer from 1 to 1024 or a fraction from 0.01 to 0.99" in reported
    unseen = fraction(memory_only, "0.1").replace("    app:", "    lamina.dev/webhook: ignore\n    app:", 1)
    reported = lab.kubectl("apply", "-f", "-", stdin=unseen, check=False)
    assert (
        "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]" in reported
        and "must be an integer" in reported
    )
    assert lab.kubectl("get", "deployments", "-o", "name") == ""


def test_s0_11_amounts_split_over_two_gpus(lab: Lab, memory_and_compute: str) -> None:
    labelled = memory_and_compute.replace(
        "      labels:\n        app: gpu-app", '      labels:\n        app: gpu-app\n        volcano.sh/gpu-num: "2"'
    )
    lab.apply(with_amount(labelled, CORES, 50))
    pod = lab.running_pod(APP)
    given = shares(lab)
    assert len({share["gpu"] for share in given}) == 2
    assert [(share["memoryMiB"], share["cores"]) for share in given] == [(2560, 25)] * 2
    assert len(re.findall(r"0MiB / +2560MiB", lab.kubectl("exec", pod, "--", "nvidia-smi"))) == 2
    lab.delete_workloads()
    assert "must be a multiple of" in refusal(lab, labelled)
