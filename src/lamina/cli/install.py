"""`lamina install`: the manifests of Lamina for one cluster, or its Helm chart; and a scheduler's configuration."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.view import Kubeconfig
from lamina.errors import BadInput

KubeVersion = Annotated[
    str, typer.Option("--kube-version", help="The cluster's version; without it the cluster is asked.")
]


def install(
    set_values: Annotated[
        list[str] | None, typer.Option("--set", help="A value, such as agent.mig=true; the value is YAML.")
    ] = None,
    values: Annotated[list[Path] | None, typer.Option("--values", help="A file of values in YAML.")] = None,
    kube_version: KubeVersion = "",
    chart: Annotated[Path | None, typer.Option("--chart", help="Write a Helm chart into this new folder.")] = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Print what to apply: `lamina install | kubectl apply -f -`. See docs/install.md for the values."""
    if chart is not None:
        if set_values or values or kube_version:
            raise BadInput("--chart takes no values and no version; helm does")
        _write_chart(chart)
        return
    from lamina.install import values as install_values

    read = install_values.read([(str(path), _text(path)) for path in values or ()], set_values or ())
    version = kube_version or asyncio.run(_version(kubeconfig))
    typer.echo(_manifests(install_values.plain(read), version), nl=False)


def scheduler_config(
    config: Annotated[Path | None, typer.Option("--config", help="Lamina's configuration file.")] = None,
    kube_version: Annotated[str, typer.Option("--kube-version", help="The version of kube-scheduler.")] = "",
    extender_url: Annotated[
        str, typer.Option("--extender-url", help="Where the control part is.")
    ] = "http://lamina-control.lamina-system.svc:8080",
    weight: Annotated[int, typer.Option("--weight", min=1, help="The weight of its word.")] = 10,
    out: Annotated[Path | None, typer.Option("--out", help="A file to write; without it, standard output.")] = None,
) -> None:
    """Print a configuration for kube-scheduler with Lamina's profiles and extender."""
    import yaml

    from lamina.dialects import config as configuration
    from lamina.install.scheduler_config import scheduler_config as made
    from lamina.install.terms import parse_version

    if not kube_version:
        raise BadInput("--kube-version is missing: kube-scheduler's versions read different forms")
    read = configuration.load(_text(config), str(config)) if config is not None else configuration.DEFAULT
    document = made(read, version=parse_version(kube_version), extender_url=extender_url, weight=weight)
    text = yaml.safe_dump(document, sort_keys=False)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise BadInput(f"--out {out} cannot be written: {error.strerror}") from error


def _manifests(values: dict[str, object], version: str) -> str:
    import yaml

    from lamina.install.objects import definitions, namespace, objects
    from lamina.install.render import render
    from lamina.install.terms import Setting, parse_version

    setting = Setting(values=values, version=parse_version(version))
    documents = [namespace(), *definitions(), *render(objects(), setting)]
    return yaml.safe_dump_all(documents, sort_keys=False, width=116, explicit_start=True)


async def _version(kubeconfig: Path | None) -> str:
    from lamina.ports.kube.client import connect

    try:
        kube = await connect(kubeconfig)
    except BadInput as problem:
        raise BadInput(f"{problem}; without a cluster to ask, name its version with --kube-version") from problem
    try:
        return str((await kube.version())["gitVersion"])
    finally:
        await kube.close()


def _write_chart(folder: Path) -> None:
    from lamina.install.chart import chart

    if folder.exists():
        raise BadInput(f"--chart {folder} exists already; name a new folder")
    try:
        for name, text in chart().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as error:
        raise BadInput(f"--chart {folder} cannot be written: {error.strerror}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
