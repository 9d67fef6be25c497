"""`lamina install`: the manifests of Lamina for one cluster, or its Helm chart; and `lamina scheduler-config`."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from lamina import __version__, configuration
from lamina.cli.connection import ClusterChoice, cluster_command, cluster_line, with_cluster
from lamina.cli.options import check_namespace, component_namespace, lamina_namespace
from lamina.cli.terminal import say
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import BadInput
from lamina.install import values as install_values
from lamina.install.chart import chart, definitions, images, is_configuration, namespace_object, objects, yaml_documents
from lamina.install.scheduler_config import ExtenderAccess
from lamina.install.scheduler_config import extender_url as service_url
from lamina.install.scheduler_config import scheduler_config as render_config
from lamina.install.versions import parse_version, warning_of
from lamina.operations.installed import InstalledCluster, configuration_change, read_installed
from lamina.ports.kube.errors import NotLoggedIn
from lamina.ports.user_files import read_text, write, write_new_folder

KubeVersion = Annotated[
    str, typer.Option("--kube-version", help="Kubernetes version of the cluster. Defaults to asking the cluster.")
]


@cluster_command
def install(
    choice: ClusterChoice,
    set_values: Annotated[
        list[str] | None, typer.Option("--set", help="Set a value, such as agent.mig=true. The value is YAML.")
    ] = None,
    set_files: Annotated[
        list[str] | None, typer.Option("--set-file", help="Set a value to the text of a file: KEY=FILE.")
    ] = None,
    values: Annotated[list[Path] | None, typer.Option("--values", help="YAML file with values.")] = None,
    kube_version: KubeVersion = "",
    chart: Annotated[Path | None, typer.Option("--chart", help="Write a Helm chart into this new directory.")] = None,
    list_images: Annotated[
        bool, typer.Option("--list-images", help="Print the images that would be pulled, for a registry of your own.")
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help=f"Namespace of the installation. Defaults to the one that Lamina is in, or {DEFAULT_NAMESPACE}.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Print manifests to apply: `lamina install | kubectl apply -f -`."""
    if chart is not None:
        if set_values or set_files or values or kube_version or list_images or namespace:
            raise BadInput(
                "--chart cannot be combined with values, --kube-version, --namespace or --list-images; "
                "pass values to helm"
            )
        _write_chart(chart)
        return
    texts = [(str(path), read_text(path)) for path in values or ()]
    read = install_values.read(texts, set_values or (), [_text_of(setting) for setting in set_files or ()])
    install_values.check_image(read)
    check_namespace(namespace, "--namespace")
    namespace = namespace or lamina_namespace()
    if kube_version:
        cluster = InstalledCluster(kube_version, namespace=namespace or DEFAULT_NAMESPACE)
    else:
        cluster = _ask(choice, namespace)
    if list_images:
        say("\n".join(images(objects(install_values.plain(read), parse_version(cluster.version)))))
        return
    change = configuration_change(read.config, cluster)
    for warning in filter(None, (_version_warning(cluster.version), change.warning, _namespace_warning(cluster))):
        say(f"Warning: {warning}", err=True)
    say(_manifests(install_values.plain(read), cluster, keep_configuration=change.keep), end="")


def _text_of(setting: str) -> tuple[str, str]:
    """The path of a value, and the text in the file that is named for it. Raises BadInput."""
    path, equals, file = setting.partition("=")
    if not equals or not file:
        raise BadInput(f"--set-file must be KEY=FILE, got {setting!r}")
    return path, read_text(Path(file))


def scheduler_config(
    config: Annotated[Path | None, typer.Option("--config", help="Path to the configuration file.")] = None,
    kube_version: Annotated[str, typer.Option("--kube-version", help="Version of kube-scheduler.")] = "",
    extender_url: Annotated[
        str,
        typer.Option(
            "--extender-url",
            help="URL of the controller's extender. With http, no certificate is used. Defaults to its Service.",
        ),
    ] = "",
    extender_tls: Annotated[
        str,
        typer.Option(
            "--extender-tls",
            help="Directory in which kube-scheduler finds its client certificate in tls.crt and tls.key, and the "
            "authority of the extender in ca.crt.",
        ),
    ] = "/etc/lamina-extender-tls",
    weight: Annotated[int, typer.Option("--weight", min=1, help="Weight of the extender's score.")] = 10,
    score_pods_without_gpus: Annotated[
        bool,
        typer.Option(
            "--score-pods-without-gpus/--no-score-pods-without-gpus",
            help="Let the placement policy choose nodes also for pods of Lamina's schedulers that request no GPU.",
        ),
    ] = True,
    out: Annotated[Path | None, typer.Option("--out", help="File to write. Defaults to standard output.")] = None,
) -> None:
    """Print a kube-scheduler configuration with Lamina's profiles and extender."""
    if not kube_version:
        raise BadInput("--kube-version is required: the configuration format depends on the version of kube-scheduler")
    read = configuration.load(read_text(config), str(config)) if config is not None else configuration.DEFAULT
    namespace = component_namespace()
    access = ExtenderAccess(extender_url or service_url(namespace), extender_tls, namespace)
    document = render_config(
        read,
        version=parse_version(kube_version),
        access=access,
        weight=weight,
        pods_without_gpus=score_pods_without_gpus,
    )
    text = yaml.safe_dump(document, sort_keys=False)
    if out is None:
        say(text, end="")
        return
    write(out, text.encode(), "--out")


def _manifests(
    values: dict[str, object], cluster: InstalledCluster, *, keep_configuration: bool = False, own: str = __version__
) -> str:
    """The objects in YAML. To keep the configuration of the cluster, the ConfigMap is left out."""
    made = objects(values, parse_version(cluster.version), own, namespace=cluster.namespace)
    first = namespace_object(cluster.namespace, of_others=cluster.made_by_others)
    documents = [first, *definitions(), *made]
    documents = [each for each in documents if not (keep_configuration and is_configuration(each))]
    return yaml_documents(documents)


def _version_warning(version: str) -> str:
    return warning_of(parse_version(version))


def _namespace_warning(cluster: InstalledCluster) -> str:
    if not cluster.made_by_others:
        return ""
    return (
        f"the namespace {cluster.namespace} exists already; agents need its pod security standard to be privileged, "
        "and `lamina uninstall` keeps it"
    )


def _ask(choice: ClusterChoice, namespace: str) -> InstalledCluster:
    """What the cluster has, which is named next to the manifests."""
    try:
        found = with_cluster(choice, lambda kube: read_installed(kube, namespace))
    except (BadInput, NotLoggedIn) as problem:
        raise type(problem)(f"{problem}; to render without a cluster, set --kube-version") from problem
    say(cluster_line(choice), err=True)
    return found


def _write_chart(folder: Path) -> None:
    write_new_folder(folder, chart(), "--chart")
