"""What Kueue counts of a pod by examples/kueue, next to what the controller grants it.

Kueue adds up the limits of all containers and multiplies the sums, as `applyResourceTransformations` of its package
`workload` does.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.ports.kube import PODS, Object
from tests.controller.binders import Bench
from tests.worlds.objects import gpus

EXAMPLES = Path(__file__).parents[2] / "examples/kueue"
GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/total-gpumem", "nvidia.com/total-gpucores"


def transformed(requests: Counter[str]) -> Counter[str]:
    """By the rules of the example; whatever has no rule counts as it is."""
    rules = yaml.safe_load((EXAMPLES / "kueue-config.yaml").read_text())["resources"]["transformations"]
    assert {rule["strategy"] for rule in rules} == {"Replace"}
    inputs = {rule["input"]: rule for rule in rules}
    found = Counter({name: amount for name, amount in requests.items() if name not in inputs})
    for name, rule in inputs.items():
        factor = requests.get(rule.get("multiplyBy", ""), 1)
        for output, each in (rule.get("outputs") or {}).items():
            if name in requests:
                found[output] += requests[name] * factor * int(each)
    return found


def counted(spec: Object) -> Counter[str]:
    """What Kueue counts of a pod."""
    requests: Counter[str] = Counter()
    for container in spec["containers"]:
        limits = container["resources"]["limits"]
        requests.update({name: int(amount) for name, amount in limits.items() if name.startswith("nvidia.com/")})
    return transformed(requests)


async def granted(*limits: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """What Kueue counts of a pod with such containers, and the sums of its grant."""
    bench = Bench()
    bench.offer("node-0", *gpus(4))
    named = [{f"nvidia.com/{name}": str(amount) for name, amount in each.items()} for each in limits]
    containers = [{"name": f"c{i}", "image": "i", "resources": {"limits": each}} for i, each in enumerate(named)]
    spec = {"schedulerName": "lamina-scheduler", "containers": containers}
    pod = await bench.kube.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    assert await bench.bind(pod) == ""
    [grant] = await bench.grants()
    shares = [share for container in grant["spec"]["containers"] for share in container["shares"]]
    sums = Counter({GPU: len(shares)})
    for share in shares:
        sums.update({MEMORY: share["memoryMiB"], CORES: share.get("cores", 0)})
    return counted(spec), sums


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("cores", [10, 30])
async def test_a_container_counts_as_what_it_gets(count: int, cores: int) -> None:
    totals, sums = await granted({"gpu": count, "gpumem": 8000, "gpucores": cores})
    assert totals == sums == Counter({GPU: count, MEMORY: 8000 * count, CORES: cores * count})


async def test_several_containers_with_gpus_count_too_much_and_never_too_little() -> None:
    totals, sums = await granted({"gpu": 1, "gpumem": 8000, "gpucores": 10}, {"gpu": 1, "gpumem": 2000, "gpucores": 20})
    assert sums == Counter({GPU: 2, MEMORY: 10_000, CORES: 30})
    assert totals == Counter({GPU: 2, MEMORY: 20_000, CORES: 60})


async def test_the_documented_gaps() -> None:
    whole, sums = await granted({"gpu": 1})
    assert whole[MEMORY] == 0 < sums[MEMORY]
    percentage, _ = await granted({"gpu": 1, "gpumem-percentage": 50})
    covered = yaml.safe_load_all((EXAMPLES / "queues.yaml").read_text())
    [queue] = [each for each in covered if each["kind"] == "ClusterQueue"]
    [group] = queue["spec"]["resourceGroups"]
    assert set(percentage) - set(group["coveredResources"]) == {"nvidia.com/gpumem-percentage"}


def test_two_of_the_three_jobs_fit_the_queue() -> None:
    jobs = [
        counted(job["spec"]["template"]["spec"]) for job in yaml.safe_load_all((EXAMPLES / "jobs.yaml").read_text())
    ]
    assert [job[MEMORY] for job in jobs] == [16_000, 8000, 8000]
    [queue] = [
        each for each in yaml.safe_load_all((EXAMPLES / "queues.yaml").read_text()) if each["kind"] == "ClusterQueue"
    ]
    [flavor] = queue["spec"]["resourceGroups"][0]["flavors"]
    quota = {each["name"]: each["nominalQuota"] for each in flavor["resources"]}
    assert jobs[0][MEMORY] + jobs[1][MEMORY] <= quota[MEMORY] < sum(job[MEMORY] for job in jobs)
