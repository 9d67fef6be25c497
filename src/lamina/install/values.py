"""What people may set when they install, with defaults that suit a cluster with NVIDIA's container runtime.

The title of a field is its sentence in the documentation and in the chart, its description says what is allowed.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct

from lamina.dialects import config as configuration
from lamina.dialects import strict
from lamina.errors import BadInput
from lamina.install.names import SCHEDULER, chosen
from lamina.model.nodes import KEPT_OUT

Name = Annotated[str, Meta(description="a name, or an empty text")]
Text = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
Count = Annotated[int, Meta(ge=1, description="a whole number from 1 on")]
Switch = Annotated[bool, Meta(description="true or false")]
_STEP = r"/(\.?[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*"
"""One folder of a path, neither . nor .., of letters that need no quotes anywhere."""
Folder = Annotated[
    str,
    Meta(
        pattern=rf"^({_STEP})+$",
        description="an absolute path of letters, digits, dots, - and _, without . and .. as a folder and without a "
        "slash at its end, such as /var/lib/kubelet",
    ),
]
OwnFolder = Annotated[
    str,
    Meta(
        pattern=rf"^({_STEP}){{2,}}$",
        description="an absolute path as for other folders, but of two folders or more, such as /var/lib/lamina, since "
        "`lamina uninstall` has to write in the one above",
    ),
]
Objects = Annotated[tuple[dict[str, Any], ...], Meta(description="a list of objects as Kubernetes has them")]
Object = Annotated[dict[str, Any], Meta(description="keys and values as Kubernetes has them")]
Labels = Annotated[dict[str, str], Meta(description='labels and values, both as texts, such as gpu: "on"')]
LogLevel = Annotated[
    str, Meta(pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG, INFO, WARNING or ERROR")
]  # fmt: skip
Url = Annotated[str, Meta(pattern="^https?://.+", description="an address such as http://10.96.0.20:8080")]


def _asks(cpu: str, memory: str, limit: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


GPU_NODES = (
    ("nvidia.com/gpu.present", "true"),
    ("feature.node.kubernetes.io/pci-10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0302_10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0300_10de.present", "true"),
    ("gpu", "on"),
)
"""By which labels a node is known to have NVIDIA's GPUs: those of NVIDIA's operator, of node feature discovery, and
the one that HAMi's guides have people set."""


def _gpu_nodes() -> tuple[dict[str, Any], ...]:
    kept_out = [{"key": key, "operator": "NotIn", "values": [*values]} for key, values in KEPT_OUT]
    return tuple(
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}, *kept_out]} for key, value in GPU_NODES
    )


class Image(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image of control part, agent and tools."""

    repository: Annotated[Text, Meta(title="The image without its tag")] = "lamina"
    tag: Annotated[Name, Meta(title="Its tag; empty is this release")] = ""
    pullPolicy: Annotated[
        str, Meta(pattern="^(Always|IfNotPresent|Never)$", description="Always, IfNotPresent or Never",
                  title="When nodes fetch it")
    ] = "IfNotPresent"  # fmt: skip
    pullSecrets: Annotated[Objects, Meta(title="Secrets for fetching images, as `[{name: NAME}]`")] = ()


class Placed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where pods of a part may run, and what they ask."""

    nodeSelector: Annotated[Labels, Meta(title="Labels that its nodes must have")] = {}
    tolerations: Annotated[Objects, Meta(title="Taints that it tolerates")] = ()
    resources: Annotated[Object, Meta(title="What a pod asks and may use")] = {}


class Control(Placed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The control part: admission and the scheduler's extender."""

    replicas: Annotated[Count, Meta(title="Control parts; one leads, the others stand by")] = 2
    logLevel: Annotated[LogLevel, Meta(title="What it logs")] = "INFO"
    resources: Annotated[Object, Meta(title="What a pod asks and may use")] = msgspec.field(
        default_factory=lambda: _asks("100m", "200Mi", "2Gi")
    )


class SchedulerImage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """kube-scheduler's own image."""

    repository: Annotated[Text, Meta(title="kube-scheduler's image without its tag")] = "registry.k8s.io/kube-scheduler"
    tag: Annotated[Name, Meta(title="Its tag; empty is the version of the cluster")] = ""


class Scheduler(Placed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kube-scheduler with profiles that lead to the control part."""

    enabled: Annotated[Switch, Meta(title="Whether to install a scheduler; false where your own has the extender")] = (
        True
    )
    replicas: Annotated[Count, Meta(title="Schedulers; one leads, the others stand by")] = 2
    image: SchedulerImage = SchedulerImage()
    extenderUrl: Annotated[
        Url, Meta(title="Where it finds the control part; an address where the cluster has no DNS")
    ] = "http://lamina-control.lamina-system.svc:8080"
    weight: Annotated[Count, Meta(title="How much the policy's word counts beside kube-scheduler's own scores")] = 10
    resources: Annotated[Object, Meta(title="What a pod asks and may use")] = msgspec.field(
        default_factory=lambda: _asks("100m", "128Mi", "1Gi")
    )


class Agent(Placed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent of each node with GPUs."""

    nodeSelectorTerms: Annotated[
        Objects, Meta(title="Which nodes have an agent: those that one of these selects; empty is every node")
    ] = msgspec.field(default_factory=_gpu_nodes)
    tolerations: Annotated[Objects, Meta(title="Taints that it tolerates")] = ({"operator": "Exists"},)
    driverDir: Annotated[Folder, Meta(title="The node's folder with the driver's libraries")] = (
        "/usr/lib/x86_64-linux-gnu"
    )
    kubeletDir: Annotated[Folder, Meta(title="Kubelet's folder on the node")] = "/var/lib/kubelet"
    cdiDir: Annotated[Folder, Meta(title="The node's folder in which the container runtime reads CDI specs")] = (
        "/var/run/cdi"
    )
    stateDir: Annotated[
        OwnFolder, Meta(title="The agent's own folder on the node, not on a file system mounted noexec")
    ] = "/var/lib/lamina"
    runtimeClassName: Annotated[
        Name, Meta(title="The runtime class that brings in GPUs, where NVIDIA's runtime is not the default")
    ] = ""
    nvidiaNamespace: Annotated[
        Name, Meta(title="The namespace of NVIDIA's operator, in which agents may then read its named configurations")
    ] = ""
    mig: Annotated[Switch, Meta(title="Whether agents may cut GPUs by MIG, for which they get CAP_SYS_ADMIN")] = False
    mps: Annotated[
        Switch, Meta(title="Whether agents may share GPUs by NVIDIA's MPS, for which they get CAP_SYS_ADMIN")
    ] = False
    updateStrategy: Annotated[
        Object, Meta(title="How agents are replaced; with `{type: OnDelete}` when somebody deletes their pods")
    ] = msgspec.field(default_factory=lambda: {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
    logLevel: Annotated[LogLevel, Meta(title="What it logs")] = "INFO"
    env: Annotated[Objects, Meta(title="Further environment variables")] = ()
    volumes: Annotated[Objects, Meta(title="Further volumes")] = ()
    volumeMounts: Annotated[Objects, Meta(title="Where further volumes are mounted")] = ()
    resources: Annotated[Object, Meta(title="What a pod asks and may use")] = msgspec.field(
        default_factory=lambda: _asks("50m", "128Mi", "512Mi")
    )


class NetworkPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may talk to our pods."""

    enabled: Annotated[Switch, Meta(title="Whether to install network policies; without them any pod may ask the "
                                          "extender to bind")] = True  # fmt: skip
    extenderFrom: Annotated[
        Objects, Meta(title="Who may ask the extender, as `from` of a network policy has it; empty is nobody")
    ] = msgspec.field(default_factory=lambda: ({"podSelector": {"matchLabels": chosen(SCHEDULER)}},))
    metricsFrom: Annotated[
        Objects, Meta(title="Who may read metrics, as `from` of a network policy has it; empty is everybody")
    ] = ()


class Monitoring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For the Prometheus operator."""

    enabled: Annotated[Switch, Meta(title="Whether to install ServiceMonitors, for which the Prometheus operator's "
                                          "kinds must be there")] = False  # fmt: skip
    labels: Annotated[Labels, Meta(title="Labels by which Prometheus finds them")] = {}


class Values(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them."""

    image: Image = Image()
    config: Annotated[
        dict[str, Any],
        Meta(title="The configuration, see docs/guide.md", description="keys and values as docs/guide.md has them"),
    ] = {}
    control: Control = Control()
    scheduler: Scheduler = Scheduler()
    agent: Agent = Agent()
    networkPolicy: NetworkPolicy = NetworkPolicy()
    serviceMonitor: Monitoring = Monitoring()


def read(texts: Iterable[tuple[str, str]], settings: Iterable[str]) -> Values:
    """The values of some files, as (name, text), and of settings such as `agent.mig=true`; later ones win.

    As Helm does it, mappings are merged key by key, also into the defaults, lists are replaced, and null removes a key
    of a mapping that is Kubernetes' or the configuration's; values of ours are always there.
    Raises BadInput, also for a configuration that the parts would refuse.
    """
    document = plain(Values())
    for name, text in texts:
        _merge(document, strict.load_mapping(text, name))
    for setting in settings:
        _set(document, setting)
    _refuse_removed(document, Values)
    values = strict.decode(document, Values, "the values")
    configuration.load(yaml.safe_dump(values.config, sort_keys=False), "the value config")
    return values


def _refuse_removed(document: Any, kind: Any, path: str = "") -> None:
    """Raises BadInput where one of our values is null: what stood for it would be anybody's guess."""
    for field in msgspec.structs.fields(kind) if isinstance(document, dict) else ():
        name = f"{path}{field.encode_name}"
        if field.encode_name not in document:
            raise BadInput(f"the values: {name} is null; give it a value, or leave it out for its default")
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            _refuse_removed(document[field.encode_name], field.type, f"{name}.")


def plain(values: Values) -> dict[str, Any]:
    """The values as plain data."""
    document: dict[str, Any] = msgspec.to_builtins(values)
    return document


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def _set(document: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys = [key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", path)]
    if not equals or not all(keys):
        raise BadInput(f"--set {setting}: this is not KEY=VALUE, such as agent.mig=true")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"--set {setting}: the value is not YAML; quote it as YAML does") from error
    branch: dict[str, Any] = {keys[-1]: value}
    for key in reversed(keys[:-1]):
        branch = {key: branch}
    _merge(document, branch)
