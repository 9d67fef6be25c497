"""kube-scheduler's configuration: the form of each version, the names of the configuration."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina import configuration
from lamina.dialects import resource_names
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.install.versions import BadInput, parse_version

URL = "https://lamina-controller.lamina-system.svc:8445"
TLS = "/etc/lamina-extender-tls"


def made(version: str, text: str = "") -> Any:
    read = configuration.load(text, "test")
    return scheduler_config(read, version=parse_version(version), access=ExtenderAccess(URL, TLS), weight=10)


@pytest.mark.parametrize(
    ("version", "form"),
    [
        *(("v1.20.2", "v1beta1"), ("1.21.14", "v1beta1"), ("1.22.0", "v1beta2"), ("1.23.17", "v1beta3")),
        *(("v1.24.9-eks-1", "v1beta3"), ("1.25.0", "v1"), ("v1.30.1+k3s1", "v1"), ("1.36", "v1")),
    ],
)
def test_the_form_is_one_that_the_version_reads(version: str, form: str) -> None:
    assert made(version)["apiVersion"] == f"kubescheduler.config.k8s.io/{form}"


@pytest.mark.parametrize("text", ["", "resourceName: example.com/gpu\nschedulers: {served: [default-scheduler, mine]}"])
def test_names_are_those_of_the_configuration_and_the_clusters_scheduler_keeps_its_own(text: str) -> None:
    document, read = made("1.30.0", text), configuration.load(text, "test")
    names = [profile["schedulerName"] for profile in document["profiles"]]
    assert set(names) == {*read.schedulers.served, read.schedulers.assigned} - {"default-scheduler"}
    extender, _ = document["extenders"]
    managed = {each["name"]: each["ignoredByScheduler"] for each in extender["managedResources"]}
    for names in resource_names(read):
        assert managed[names.ticket] is False
        assert all(managed[name] for name in names.all if name != names.ticket)


@pytest.mark.parametrize("version", ["", "1", "latest", "v1", "1.x"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(BadInput, match="the Kubernetes version must look like"):
        parse_version(version)


def test_the_command_writes_what_the_init_container_asks_for(tmp_path: Path) -> None:
    (tmp_path / "lamina.yaml").write_text("schedulers: {served: [mine]}")
    options = [f"--config={tmp_path / 'lamina.yaml'}", "--kube-version=v1.20.2", f"--extender-url={URL}", "--weight=3"]
    command = [sys.executable, "-m", "lamina", "scheduler-config", *options, f"--out={tmp_path / 'out.yaml'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    written = yaml.safe_load((tmp_path / "out.yaml").read_text())
    assert written == scheduler_config(
        configuration.load("schedulers: {served: [mine]}", "test"),
        version=(1, 20, 2),
        access=ExtenderAccess(URL, TLS),
        weight=3,
    )


def test_a_certificate_of_the_scheduler_is_named_where_it_is() -> None:
    access = ExtenderAccess(URL, "/etc/tls")
    extender, _ = scheduler_config(configuration.DEFAULT, version=(1, 36, 0), access=access, weight=1)["extenders"]
    assert (
        extender["urlPrefix"] == "https://lamina-controller.lamina-system.svc:8445" and extender["enableHTTPS"] is True
    )
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    name = {"serverName": "lamina-controller.lamina-system.svc"}
    assert extender["tlsConfig"] == name | {key: f"/etc/tls/{file}" for key, file in files.items()}


def test_plain_http_has_no_certificate() -> None:
    access = ExtenderAccess(URL.replace("https:", "http:"), "/tls")
    extender, _ = scheduler_config(configuration.DEFAULT, version=(1, 36, 0), access=access, weight=1)["extenders"]
    assert "tlsConfig" not in extender and "enableHTTPS" not in extender


@pytest.mark.parametrize(("version", "disabled"), [("1.19.16", True), ("1.20.2", False), ("1.36.0", False)])
def test_scores_that_no_pod_asks_for_do_not_overrule_the_policy(version: str, disabled: bool) -> None:
    """Scores that follow from what a pod asks for stay: node affinity, taints, affinity of pods, its own spread."""
    for profile in made(version)["profiles"]:
        names = {each["name"] for each in profile["plugins"]["score"]["disabled"]}
        assert {"NodeResourcesBalancedAllocation", "ImageLocality"} <= names
        assert not names & {"NodeAffinity", "TaintToleration", "InterPodAffinity", "PodTopologySpread"}
        assert ("SelectorSpread" in names) == disabled
        arguments = {each["name"]: each["args"] for each in profile.get("pluginConfig", ())}
        spread = {} if disabled else {"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": []}}
        assert arguments == spread


@pytest.mark.parametrize(
    ("weight", "verb"), [(1, "filter"), (9, "filter"), (10, "filter-to-best"), (100, "filter-to-best")]
)
def test_filter_decides_from_the_weight_on_at_which_the_policy_does(weight: int, verb: str) -> None:
    document = scheduler_config(
        configuration.DEFAULT, version=(1, 36, 0), access=ExtenderAccess(URL, TLS), weight=weight
    )
    assert document["extenders"][0]["filterVerb"] == verb


def test_pods_without_gpus_are_scored_by_an_extender_that_does_nothing_else() -> None:
    _, other = made("1.30.0")["extenders"]
    assert other["prioritizeVerb"] == "prioritize-without-gpus" and other["weight"] == 10
    assert not {"filterVerb", "preemptVerb", "bindVerb", "managedResources"} & other.keys()
    assert other["ignorable"] is True, "pods without GPUs are placed while Lamina is down"
    document = scheduler_config(
        configuration.DEFAULT, version=(1, 30, 0), access=ExtenderAccess(URL, TLS), weight=1, pods_without_gpus=False
    )
    assert len(document["extenders"]) == 1
