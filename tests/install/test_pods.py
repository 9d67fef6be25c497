"""What Kubernetes would not keep is not written, or kubectl would call it changed at every apply."""

from collections.abc import Iterator
from typing import Any

import pytest

from lamina.core.component_names import EXTENDER_CLIENT_SECRET
from lamina.errors import BadInput
from lamina.install import values
from lamina.install.chart import objects


def empty(value: Any, path: str) -> Iterator[str]:
    """Paths of empty lists, and of node selectors without a label."""
    if value == [] or (value == {} and path.endswith("nodeSelector")):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from empty(inner, f"{path}.{key}")
    for number, inner in enumerate(value if isinstance(value, list) else ()):
        yield from empty(inner, f"{path}[{number}]")


def test_pods_have_no_empty_lists() -> None:
    made = objects(values.plain(values.Values()), (1, 36, 0))
    workloads = [each for each in made if "template" in each.get("spec", {})]
    assert len(workloads) == 3
    assert [path for each in workloads for path in empty(each["spec"], each["metadata"]["name"])] == []


def test_ports_name_their_protocol() -> None:
    """Servers before 1.21 take no list of ports without it from server-side apply."""
    made = objects(values.plain(values.Values()), (1, 20, 2))
    listed = [each for one in made for each in ports(one)]
    assert len(listed) >= 8
    assert [each for each in listed if each.get("protocol") != "TCP"] == []


def ports(value: Any) -> Iterator[dict[str, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key == "ports":
            yield from inner
        yield from ports(inner)
    for inner in value if isinstance(value, list) else ():
        yield from ports(inner)


@pytest.mark.parametrize(("minor", "policy"), [(26, None), (27, "AlwaysAllow"), (36, "AlwaysAllow")])
def test_replicas_keep_no_node(minor: int, policy: str | None) -> None:
    """Neither from being drained, when none of them is ready, nor from being removed by an autoscaler."""
    made = objects(values.plain(values.Values()), (1, minor, 0))
    budgets = [each["spec"] for each in made if each["kind"] == "PodDisruptionBudget"]
    assert [(each["maxUnavailable"], each.get("unhealthyPodEvictionPolicy")) for each in budgets] == [(1, policy)] * 2
    pods = [each["spec"]["template"]["metadata"] for each in made if each["kind"] == "Deployment"]
    evictable = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    assert [each["annotations"][evictable] for each in pods] == ["true", "true"]


TLS = ("controller.extenderTlsSecret=a", "scheduler.extenderTlsSecret=b")


def components(*settings: str) -> dict[str, Any]:
    made = objects(values.plain(values.read([], settings)), (1, 36, 0))
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in made if each["kind"] == "Deployment"}


def test_certificates_of_the_extender_are_mounted_where_the_options_look() -> None:
    pods = components(*TLS)
    for name, secret in (("lamina-controller", "a"), ("lamina-scheduler", "b")):
        (volume,) = (each for each in pods[name]["volumes"] if each.get("secret"))
        assert volume["secret"] == {"secretName": secret}
        served = pods[name]["containers"][0]
        (mount,) = (each for each in served["volumeMounts"] if each["name"] == volume["name"])
        (reading, *_) = pods[name].get("initContainers", [served])
        assert f"--extender-tls={mount['mountPath']}" in reading["args"] and mount["readOnly"] is True


def test_by_default_the_scheduler_has_the_certificate_that_the_controller_creates() -> None:
    pods = components()
    (volume,) = (each for each in pods["lamina-scheduler"]["volumes"] if each.get("secret"))
    assert volume["secret"] == {"secretName": EXTENDER_CLIENT_SECRET}
    assert not any(each.get("secret") for each in pods["lamina-controller"]["volumes"])
    for container in pods["lamina-controller"]["containers"]:
        assert not any("http" in each for each in container["args"])
        assert not any("http" in each["name"] for each in container["ports"])


def test_plain_http_is_an_explicit_choice() -> None:
    http = "scheduler.extenderUrl=http://lamina-controller.lamina-system.svc:8080"
    with pytest.raises(BadInput, match=r"must begin with https://, .*set controller\.extenderHttp to true"):
        values.read([], [http])
    controller, _ = components(http, "controller.extenderHttp=true")["lamina-controller"]["containers"]
    assert "--extender-http-bind=:8080" in controller["args"] and "--extender-bind=:8445" in controller["args"]


@pytest.mark.parametrize("one", TLS)
def test_certificates_of_your_own_are_for_both_sides(one: str) -> None:
    with pytest.raises(BadInput, match="must both name a Secret, or neither"):
        values.read([], [one])
    assert values.read([], [one, "scheduler.enabled=false"])


def test_agents_name_their_gpus_by_a_mount_too() -> None:
    """NVIDIA's runtime may ignore the variable of unprivileged containers; it accepts mounts of /dev/null only."""
    made = objects(values.plain(values.read([], [])), (1, 36, 0))
    (pod,) = (each["spec"]["template"]["spec"] for each in made if each["kind"] == "DaemonSet")
    (agent,) = pod["containers"]
    (mount,) = (each for each in agent["volumeMounts"] if each["mountPath"] == "/var/run/nvidia-container-devices/all")
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    assert volume["hostPath"]["path"] == "/dev/null"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in agent["env"]


def test_protected_metrics_change_probes_monitors_and_rights() -> None:
    def made(*settings: str) -> list[Any]:
        read = values.read([], ["serviceMonitor.enabled=true", *settings])
        return objects(values.plain(read), (1, 36, 0))

    def schemes(documents: list[Any]) -> set[str]:
        return {
            container[probe]["httpGet"]["scheme"]
            for each in documents
            if each["metadata"]["name"] in ("lamina-controller", "lamina-agent") and "template" in each.get("spec", {})
            for container in each["spec"]["template"]["spec"]["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }

    plain, protected = made(), made("metrics.protected=true")
    assert (schemes(plain), schemes(protected)) == ({"HTTP"}, {"HTTPS"})
    assert "tokenreviews" not in str(plain) and "tokenreviews" in str(protected)
    endpoints = [each["spec"]["endpoints"] for each in protected if each["kind"] == "ServiceMonitor"]
    assert [len(each) for each in endpoints] == [2, 1]
    assert all(one["scheme"] == "https" and one["bearerTokenFile"] for each in endpoints for one in each)
    before = [each["spec"]["endpoints"] for each in plain if each["kind"] == "ServiceMonitor"]
    metrics, of_admission = ({"port": port, "honorLabels": True} for port in ("metrics", "admission-metrics"))
    assert before == [[metrics, of_admission], [metrics]]
    bindings = {each["metadata"]["name"] for each in protected if each["kind"] == "ClusterRoleBinding"}
    assert bindings >= {"lamina-controller-metrics", "lamina-agent-metrics"}
