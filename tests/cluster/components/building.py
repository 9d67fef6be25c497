"""Kubernetes 1.20.2 from Debian's source package, with Debian's Go 1.19.

The package holds all programs of Kubernetes with everything they import, though Debian builds only the client from it.
It is built in the old way of Go, without modules, in a tree called k8s.io/kubernetes. Three things have to be fixed:

* One generated file, the schemas that the API server publishes, is left out of the package; its generator is there.
* reflect2 1.0.1 reads maps in a way that Go 1.18 changed, which stops the API server after half a minute. Debian's
  package of 1.0.2 takes its place.
* Kubelet with cloud providers compiled in asks a cloud for its name; the tag `providerless` leaves them out.
"""

import os
import shutil
from pathlib import Path

from tests.cluster.components.commands import Unavailable, run
from tests.cluster.components.debian import STABLE, Apt, unpack

VERSION = "1.20.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")
GO = [f"{name}/{STABLE}" for name in ("golang-1.19-go", "golang-1.19-src", "golang-github-modern-go-reflect2-dev")]
VENDOR = "k8s.io/kubernetes/vendor/k8s.io"
VERSIONS = (f"{VENDOR}/component-base/version", f"{VENDOR}/client-go/pkg/version")
OPENAPI = Path("pkg/generated/openapi")


def build(apt: Apt, work: Path, result: Path) -> None:
    """Fill `result` with the programs. About four minutes on two cores, and 1 GB of memory."""
    system = work / "system"
    if not system.exists():
        unpack(apt.download(GO, work / "packages"), work / "system.new")
        (work / "system.new").rename(system)
    tree = work / "go/src/k8s.io/kubernetes"
    if not tree.exists():
        _lay_out(apt.source("kubernetes", work / "source"), system, tree)
    go = system / "usr/lib/go-1.19/bin/go"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "GOROOT": str(system / "usr/lib/go-1.19"),
        "GOPATH": str(work / "go"),
        "GOCACHE": str(work / "compiled"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
    }
    _generate_openapi(go, tree, work, environment)
    stamps = [
        f"-X {package}.{name}={value}"
        for package in VERSIONS
        for name, value in (("gitVersion", f"v{VERSION}"), ("gitMajor", "1"), ("gitMinor", "20"))
    ]
    command = ["nice", "-n", "19", go, "build", "-trimpath", "-tags", "providerless"]
    command += ["-ldflags", " ".join(["-s -w", *stamps]), "-o", f"{result}/"]
    run([*command, *(f"./cmd/{name}" for name in PROGRAMS)], cwd=tree, env=environment, timeout=3000)


def _lay_out(files: list[Path], system: Path, tree: Path) -> None:
    """The source tree with Debian's patches, in the place where Go looks for it."""
    draft = tree.with_name("kubernetes.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    archives = sorted((file for file in files if ".tar." in file.name), key=lambda file: ".debian." in file.name)
    for archive in archives:
        inside = 1 if ".orig." in archive.name else 0
        run(["tar", "-xf", archive, f"--strip-components={inside}", "-C", draft])
    series = draft / "debian/patches/series"
    for patch in series.read_text().split() if series.exists() else ():
        run(["patch", "-sp1", "-f", "-i", series.parent / patch], cwd=draft)
    repaired = Path("github.com/modern-go/reflect2")
    shutil.rmtree(draft / "vendor" / repaired)
    shutil.copytree(system / "usr/share/gocode/src" / repaired, draft / "vendor" / repaired)
    draft.rename(tree)


def _generate_openapi(go: Path, tree: Path, work: Path, environment: dict[str, str]) -> None:
    """Write the file with the schemas of all types that ask for it."""
    target = tree / OPENAPI / "zz_generated.openapi.go"
    if target.exists():
        return
    generator = work / "openapi-gen"
    run(
        ["nice", "-n", "19", go, "build", "-o", generator, "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"],
        cwd=tree,
        env=environment,
        timeout=900,
    )
    packages = _packages_with_schemas(tree)
    if not packages:
        raise Unavailable(f"no package below {tree} asks for schemas; this is another source package than expected")
    run(
        [
            *("nice", "-n", "19", generator, "--logtostderr"),
            *("-i", ",".join(f"k8s.io/kubernetes/{package}" for package in packages)),
            *("-p", f"k8s.io/kubernetes/{OPENAPI}"),
            *("-O", "zz_generated.openapi.part"),
            *("-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt"),
            *("-r", work / "violations"),
        ],
        cwd=tree,
        env=environment,
        timeout=900,
    )
    (tree / OPENAPI / "zz_generated.openapi.part.go").rename(target)


def _packages_with_schemas(tree: Path) -> list[str]:
    """Packages with a file that says `+k8s:openapi-gen=`; those of the staging tree by the name that Go imports."""
    found = set()
    for part in ("pkg", "plugin", "staging/src/k8s.io"):
        for file in (tree / part).rglob("*.go"):
            name = file.relative_to(tree).as_posix()
            if file.name.startswith("zz_generated") or "code-generator/" in name or "sample-" in name:
                continue
            if b"+k8s:openapi-gen=" in file.read_bytes():
                found.add(file.parent.relative_to(tree).as_posix().replace("staging/src/", "vendor/"))
    return sorted(found)
