"""kube-scheduler's configuration: the form of each version, the names of the configuration."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.dialects import config, vocabularies
from lamina.install.scheduler_config import scheduler_config
from lamina.install.terms import BadInput, parse_version

URL = "http://lamina-control.lamina-system.svc:8080"


def made(version: str, text: str = "") -> Any:
    read = config.load(text, "test")
    return scheduler_config(read, version=parse_version(version), extender_url=URL, weight=10)


@pytest.mark.parametrize(
    ("version", "form"),
    [
        *(("v1.20.2", "v1beta1"), ("1.21.14", "v1beta1"), ("1.22.0", "v1beta2"), ("1.23.17", "v1beta3")),
        *(("v1.24.9-eks-1", "v1beta3"), ("1.25.0", "v1"), ("v1.30.1+k3s1", "v1"), ("1.36", "v1")),
    ],
)
def test_the_form_is_one_that_the_version_reads(version: str, form: str) -> None:
    assert made(version)["apiVersion"] == f"kubescheduler.config.k8s.io/{form}"


@pytest.mark.parametrize("text", ["", "resourceName: example.com/gpu\nschedulers: [default-scheduler, mine]"])
def test_names_are_those_of_the_configuration_and_the_clusters_scheduler_keeps_its_own(text: str) -> None:
    document, read = made("1.30.0", text), config.load(text, "test")
    names = [profile["schedulerName"] for profile in document["profiles"]]
    assert set(names) == {*read.schedulers, read.hami.scheduler_name} - {"default-scheduler"}
    (extender,) = document["extenders"]
    managed = {each["name"]: each["ignoredByScheduler"] for each in extender["managedResources"]}
    for vocabulary in vocabularies(read):
        assert managed[vocabulary.ticket] is False
        assert all(managed[name] for name in vocabulary.all if name != vocabulary.ticket)


@pytest.mark.parametrize("version", ["", "1", "latest", "v1", "1.x"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(BadInput, match="is not a version of Kubernetes"):
        parse_version(version)


def test_the_command_writes_what_the_init_container_asks_for(tmp_path: Path) -> None:
    (tmp_path / "lamina.yaml").write_text("schedulers: [mine]")
    options = [f"--config={tmp_path / 'lamina.yaml'}", "--kube-version=v1.20.2", f"--extender-url={URL}", "--weight=3"]
    command = [sys.executable, "-m", "lamina", "scheduler-config", *options, f"--out={tmp_path / 'out.yaml'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    written = yaml.safe_load((tmp_path / "out.yaml").read_text())
    assert written == scheduler_config(
        config.load("schedulers: [mine]", "test"), version=(1, 20, 2), extender_url=URL, weight=3
    )
