"""The values of an installation, with defaults that suit a cluster with NVIDIA's container runtime.

The title of a field is its sentence in the documentation and in the chart. Its description says what a value must be.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct

from lamina import configuration
from lamina.configuration import strict
from lamina.configuration.importers.values_of_others import refuse_values_of_others
from lamina.configuration.yaml_documents import load_mapping, load_value
from lamina.core.component_names import SITE, documentation
from lamina.errors import BadInput
from lamina.install.agent_values import Agent, DraValues, MpsValues
from lamina.install.names import SCHEDULER, chosen
from lamina.install.value_types import (
    Component,
    Count,
    Digest,
    DnsPolicy,
    Labels,
    LogLevel,
    Name,
    Object,
    Objects,
    Port,
    PriorityClass,
    PullPolicy,
    Repository,
    Resources,
    Switch,
    Text,
    Url,
    asks,
)


class Image(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image of controller, agent and tools."""

    repository: Annotated[Repository, Meta(title="Repository of the image, without tag and digest")] = "lamina"
    tag: Annotated[Name, Meta(title="Tag of the image. Defaults to the chart's version, with _ for +")] = ""
    digest: Annotated[Digest, Meta(title="Digest of the image. If set, the tag does not matter")] = ""
    pullPolicy: Annotated[PullPolicy, Meta(title="Image pull policy")] = "IfNotPresent"
    pullSecrets: Annotated[Objects, Meta(title="Image pull secrets, as `[{name: NAME}]`")] = ()


CLUSTER_CRITICAL = "system-cluster-critical"


class ReplicatedComponent(Component, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A component whose replicas run on any nodes."""

    affinity: Annotated[
        Object,
        Meta(
            title="Affinity of the pods. Empty means replicas on different nodes, if possible, whose architecture the "
            "image has"
        ),
    ] = msgspec.field(default_factory=dict)


class Ports(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ports of the pods of the controller. Those of its Services stay."""

    extender: Annotated[Port, Meta(title="Port of the extender")] = 8445
    extenderHttp: Annotated[Port, Meta(title="Port of the extender over plain HTTP")] = 8080
    metrics: Annotated[Port, Meta(title="Port of the controller's probes and metrics")] = 9395
    admission: Annotated[Port, Meta(title="Port of admission")] = 8443
    admissionMetrics: Annotated[Port, Meta(title="Port of admission's probes and metrics")] = 9396


class ControllerValues(ReplicatedComponent, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The controller and, next to it, admission."""

    replicas: Annotated[Count, Meta(title="Number of replicas. One leads, the others stand by")] = 2
    priorityClassName: PriorityClass = CLUSTER_CRITICAL
    hostNetwork: Annotated[
        Switch,
        Meta(
            title="Run in the network of the node, for API servers that reach nodes but not pods. A node then has one "
            "replica, and network policies do not apply to it. The contexts of `openshift.enabled` do not allow it"
        ),
    ] = False
    dnsPolicy: Annotated[
        DnsPolicy,
        Meta(title="DNS policy of the pods. Empty means ClusterFirst, with `hostNetwork` ClusterFirstWithHostNet"),
    ] = ""
    ports: Ports = Ports()
    logLevel: Annotated[LogLevel, Meta(title="Log level")] = "INFO"
    extenderTlsSecret: Annotated[
        Name,
        Meta(
            title="Secret with the extender's certificate in `tls.crt` and `tls.key`, and the authority of its "
            "clients in `ca.crt`. Empty means certificates that Lamina creates"
        ),
    ] = ""
    extenderHttp: Annotated[
        Switch,
        Meta(title="Serve the extender over plain HTTP too, at port 8080. Any client that reaches it can bind pods"),
    ] = False
    defragmentation: Annotated[
        Switch,
        Meta(title="Let the controller cordon GPUs and evict pods, for the configuration's section `defragmentation`"),
    ] = False
    idleShares: Annotated[
        Switch,
        Meta(
            title="Let the controller evict idle pods and scale workloads to zero, for the configuration's section "
            "`idleShares`"
        ),
    ] = False
    borrowers: Annotated[
        Switch,
        Meta(
            title="Let the controller evict pods whose borrowed memory neighbors need, for the configuration's section "
            "`borrowers`"
        ),
    ] = False
    preemption: Annotated[
        Switch,
        Meta(title="Let the controller evict pods for one that lacks GPU memory or compute alone"),
    ] = False
    resources: Resources = msgspec.field(default_factory=lambda: asks("100m", "200Mi", "2Gi"))
    admissionResources: Annotated[Object, Meta(title="Resource requests and limits of admission in each pod")] = (
        msgspec.field(default_factory=lambda: asks("50m", "100Mi", "1Gi"))
    )


class SchedulerImage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image of kube-scheduler."""

    repository: Annotated[Text, Meta(title="Repository of the image")] = "registry.k8s.io/kube-scheduler"
    tag: Annotated[Name, Meta(title="Tag of the image. Defaults to the version of the cluster")] = ""


class SchedulerValues(ReplicatedComponent, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kube-scheduler with profiles that use the extender."""

    enabled: Annotated[Switch, Meta(title="Install a scheduler. False if your own uses the extender")] = True
    replicas: Annotated[Count, Meta(title="Number of replicas. One leads, the others stand by")] = 2
    priorityClassName: PriorityClass = CLUSTER_CRITICAL
    image: SchedulerImage = SchedulerImage()
    extenderUrl: Annotated[
        Url,
        Meta(
            title="URL of the extender, such as one with an IP address if the nodes cannot resolve Service names. "
            "Empty means the Service of the controller"
        ),
    ] = ""
    extenderTlsSecret: Annotated[
        Name,
        Meta(
            title="Secret with the scheduler's client certificate in `tls.crt` and `tls.key`, and the extender's "
            "authority in `ca.crt`. Empty means certificates that Lamina creates"
        ),
    ] = ""
    weight: Annotated[Count, Meta(title="Weight of the extender's score relative to kube-scheduler's own scores")] = 10
    scorePodsWithoutGpus: Annotated[
        Switch,
        Meta(
            title="Let the placement policy choose nodes also for pods of Lamina's schedulers that request no GPU. "
            "Costs one more request to the extender for each pod"
        ),
    ] = True
    resources: Resources = msgspec.field(default_factory=lambda: asks("100m", "128Mi", "1Gi"))


class OpenShift(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What OpenShift needs besides."""

    enabled: Annotated[
        Switch,
        Meta(
            title="Install SecurityContextConstraints, and give folders with files for containers an SELinux type that "
            "containers may read"
        ),
    ] = False


class DashboardValues(ReplicatedComponent, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dashboard in the cluster, for viewers with a bearer token."""

    enabled: Annotated[
        Switch, Meta(title="Install the dashboard. Each viewer sees what the API server lets them list")
    ] = False
    replicas: Annotated[Count, Meta(title="Number of replicas. Each has its own history of use and health")] = 1
    metrics: Annotated[
        str,
        Meta(
            description="addresses with spaces between them, or an empty text",
            title="Pages of metrics from which it reads what containers use, such as Prometheus's /federate",
        ),
    ] = ""
    prometheus: Annotated[
        str,
        Meta(
            description="an address such as http://prometheus.monitoring:9090, or an empty text",
            title="Prometheus from which it reads the history of pods and GPUs",
        ),
    ] = ""
    resources: Resources = msgspec.field(default_factory=lambda: asks("50m", "128Mi", "1Gi"))


class NetworkPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Network policies of all components."""

    enabled: Annotated[Switch, Meta(title="Install network policies")] = True  # fmt: skip
    extenderFrom: Annotated[
        Objects,
        Meta(title="Peers that may call the extender, as `from` in a network policy. Empty means none"),
    ] = msgspec.field(default_factory=lambda: ({"podSelector": {"matchLabels": chosen(SCHEDULER)}},))
    metricsFrom: Annotated[
        Objects, Meta(title="Peers that may read metrics, as `from` in a network policy. Empty means all")
    ] = ()


class MetricsAccess(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics of the controller and the agents, and the dashboards and rules about them."""

    protected: Annotated[
        Switch,
        Meta(title="Serve metrics over HTTPS, and only to callers that may get the nonResourceURL `/metrics`"),
    ] = False
    dashboards: Annotated[Switch, Meta(title="Install dashboards as ConfigMaps, for the sidecar of Grafana")] = False
    dashboardLabels: Annotated[Labels, Meta(title="Labels by which the sidecar of Grafana selects them")] = (
        msgspec.field(default_factory=lambda: {"grafana_dashboard": "1"})
    )
    rules: Annotated[
        Switch,
        Meta(title="Install a PrometheusRule with alerts. The CRDs of the Prometheus operator must be installed"),
    ] = False
    ruleLabels: Annotated[Labels, Meta(title="Labels by which Prometheus selects it")] = {}
    runbooks: Annotated[
        Url, Meta(title="Address of a site with this documentation, to which alerts and dashboards lead")
    ] = SITE


class Monitoring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ServiceMonitors for the Prometheus operator."""

    enabled: Annotated[Switch, Meta(title="Install ServiceMonitors. The CRDs of the Prometheus operator must be "
                                          "installed")] = False  # fmt: skip
    labels: Annotated[Labels, Meta(title="Labels by which Prometheus selects them")] = {}


class Values(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All values."""

    image: Image = Image()
    config: Annotated[
        dict[str, Any],
        Meta(title="Lamina's configuration", description=f"keys of {documentation('reference/configuration.md')}"),
    ] = {}
    controller: ControllerValues = ControllerValues()
    scheduler: SchedulerValues = SchedulerValues()
    agent: Agent = Agent()
    mps: MpsValues = MpsValues()
    dra: DraValues = DraValues()
    openshift: OpenShift = OpenShift()
    dashboard: DashboardValues = DashboardValues()
    networkPolicy: NetworkPolicy = NetworkPolicy()
    metrics: MetricsAccess = MetricsAccess()
    serviceMonitor: Monitoring = Monitoring()


def read(texts: Iterable[tuple[str, str]], settings: Iterable[str], files: Iterable[tuple[str, str]] = ()) -> Values:
    """The values of files, as (name, text), of settings such as `agent.mig=true`, and of paths with the texts that are
    their values; later ones win.

    As in Helm, mappings are merged key by key, also into the defaults, lists are replaced, and null removes a key of a
    mapping in Kubernetes' or the configuration's form. Lamina's own values cannot be removed.
    Raises BadInput, also for a configuration that the components would refuse.
    """
    document = plain(Values())
    for name, text in texts:
        _merge(document, load_mapping(text, name))
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(f"--set must be KEY=VALUE, such as agent.mig=true, got {setting!r}")
        _set(document, path, load_value(text, f"--set {path}"))
    for path, text in files:
        _set(document, path, text)
    _refuse_removed(document, Values)
    refuse_values_of_others(document)
    values = strict.decode(document, Values, "the values")
    configuration.load(yaml.safe_dump(values.config, sort_keys=False), "the value config")
    if values.scheduler.enabled:
        _check_extender(values)
    names = [pool.name for pool in values.agent.pools]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadInput(f"the value agent.pools must have each name once, got {twice} twice")
    if values.controller.hostNetwork and values.openshift.enabled:
        raise BadInput(
            "the values controller.hostNetwork and openshift.enabled must not both be true: the controller's "
            "SecurityContextConstraints admit no pods in the network of nodes"
        )
    return values


def check_image(values: Values) -> None:
    """Raises BadInput for the default repository, which nodes would look for in a public registry."""
    if values.image.repository == Image().repository:
        raise BadInput(image_problem())


def image_problem() -> str:
    """Why the default repository is refused."""
    default = Image().repository
    return (
        f"the value image.repository must name a registry, such as --set image.repository=REGISTRY/{default}; "
        f"for an image {default} that the nodes already have, use docker.io/library/{default}"
    )


def _check_extender(values: Values) -> None:
    """Raises BadInput where the scheduler could not reach the extender."""
    controller, scheduler = values.controller, values.scheduler
    if scheduler.extenderUrl.startswith("http://") and not controller.extenderHttp:
        raise BadInput(
            f"the value scheduler.extenderUrl must begin with https://, got {scheduler.extenderUrl}; for plain HTTP, "
            "set controller.extenderHttp to true"
        )
    if bool(controller.extenderTlsSecret) != bool(scheduler.extenderTlsSecret):
        raise BadInput(
            "the values controller.extenderTlsSecret and scheduler.extenderTlsSecret must both name a Secret, "
            "or neither"
        )


def _refuse_removed(document: Any, kind: Any, path: str = "") -> None:
    """Raises BadInput if one of Lamina's values is null."""
    for field in msgspec.structs.fields(kind) if isinstance(document, dict) else ():
        name = f"{path}{field.encode_name}"
        if field.encode_name not in document:
            raise BadInput(f"values: {name} must not be null; set it, or omit it to use its default")
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


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    keys = [key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", path)]
    if not all(keys):
        raise BadInput(f"a value is named by a path such as agent.mig, got {path!r}")
    branch: dict[str, Any] = {keys[-1]: value}
    for key in reversed(keys[:-1]):
        branch = {key: branch}
    _merge(document, branch)
