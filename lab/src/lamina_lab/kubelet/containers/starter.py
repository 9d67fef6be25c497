"""From a container's spec to the program that a shim runs: devices, CDI, environment, directories."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lamina.errors import Outside
from lamina.ports.kube import CONFIG_MAPS, SECRETS, Kube, NotFound
from lamina_lab.kubelet.claims.driver import ClaimError
from lamina_lab.kubelet.claims.manager import ClaimManager
from lamina_lab.kubelet.containers import environment, mounts
from lamina_lab.kubelet.containers.entrypoints import program
from lamina_lab.kubelet.containers.shim_client import Program
from lamina_lab.kubelet.device_manager.cdi import CdiFolders, CdiMount, UnresolvableDevices
from lamina_lab.kubelet.device_manager.manager import DeviceManager
from lamina_lab.kubelet.device_manager.plugins import PluginError
from lamina_lab.kubelet.model.settings import Settings

KEPT_INSTANCES = 2  # the one that runs and the one before, for `kubectl logs --previous`


class CreateError(Exception):
    """The container could not be created. `reason` and the message are shown until the next attempt.

    `event` and `text` are those of the event.
    """

    def __init__(self, reason: str, message: str, *, event: str = "Failed", text: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.event = event
        self.text = text or f"Error: {message}"


class Starter:
    """Builds the programs of containers on one node. `server` is the URL of the API server for containers."""

    def __init__(
        self, settings: Settings, kube: Kube, server: str, devices: DeviceManager, claims: ClaimManager
    ) -> None:
        self._settings = settings
        self._kube = kube
        self._server = server
        self._devices = devices
        self._claims = claims
        self._cdi = CdiFolders(settings.cdi_dirs)

    async def program(
        self, pod: Mapping[str, Any], container: Mapping[str, Any], instance: int, pod_ip: str
    ) -> tuple[Program, bool]:
        """The program of instance number `instance`, and whether it replaces an unknown entrypoint.

        Raises CreateError.
        """
        try:
            given = await self._devices.prepare(pod, container)
        except PluginError as error:
            raise CreateError("CreateContainerConfigError", str(error)) from error
        claimed = await self._claimed(pod, container)
        own = await self._own_variables(pod, container, pod_ip)
        brought = self._device_edits(given.mounts, [*given.cdi, *claimed])
        uid, name = pod["metadata"]["uid"], container["name"]
        folder = self._fresh_folder(uid, name, instance)
        base = self._base(pod, str(folder))
        env = environment.combined(base, given.envs, own, self._settings.container_env, brought)
        command, args = environment.command_of(container, own)
        words, unknown = program(container.get("image", ""), command, args, env["PATH"], self._settings.programs)
        made = Program(
            argv=words,
            env=env,
            cwd=folder,
            log=self._settings.log(uid, name, instance),
            tty=bool(container.get("tty")),
            stdin=bool(container.get("stdin")),
        )
        return made, unknown

    async def _claimed(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> list[str]:
        """The CDI devices of the container's claims, once all claims of the pod are prepared."""
        try:
            await self._claims.prepare(pod)
        except ClaimError as error:
            text = f"Failed to prepare dynamic resources: {error}"
            raise CreateError("ContainerCreating", "", event="FailedPrepareDynamicResources", text=text) from error
        names = [name for _, device in self._claims.devices(pod, container) for name in device.cdi]
        return list(dict.fromkeys(names))

    async def _own_variables(self, pod: Mapping[str, Any], container: Mapping[str, Any], pod_ip: str) -> dict[str, str]:
        contents = {}
        for source in environment.sources(container):
            texts = await self._read(pod["metadata"]["namespace"], source)
            if texts is not None:
                contents[source.kind, source.name] = texts
        allocatable = {"cpu": str(self._settings.cpus), "memory": f"{self._settings.memory_mib}Mi"}
        facts = environment.DownwardFacts(self._settings.node_ip, pod_ip, allocatable)
        try:
            return environment.own_variables(pod, container, contents, facts)
        except environment.ConfigError as error:
            raise CreateError("CreateContainerConfigError", str(error)) from error

    async def _read(self, namespace: str, source: environment.EnvironmentSource) -> dict[str, str] | None:
        resource = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}[source.kind]
        try:
            return environment.texts(await self._kube.get(resource, source.name, namespace=namespace))
        except NotFound as error:
            if source.optional:
                return None
            missing = f'{source.kind.lower()} "{source.name}" not found'
            raise CreateError("CreateContainerConfigError", missing) from error
        except Outside as error:
            raise CreateError("CreateContainerConfigError", str(error)) from error

    def _device_edits(self, given: Sequence[CdiMount], cdi: Sequence[str]) -> dict[str, str] | None:
        """The variables of CDI devices and of mounts; None for a container without a CDI device."""
        if not cdi:
            return None
        try:
            edits = self._cdi.resolve(cdi)
            named = mounts.environment([*given, *edits.mounts])
            variables = {**self._settings.gpu_env, **edits.env}
            if self._settings.refuse_visible_devices:
                variables[environment.VISIBLE] = "void"
            return variables | named
        except UnresolvableDevices as error:
            raise CreateError("CreateContainerError", f"failed to create containerd container: {error}") from error
        except OSError as error:
            message = f"failed to create containerd container: {error.filename}: {error.strerror}"
            raise CreateError("CreateContainerError", message) from error

    def _base(self, pod: Mapping[str, Any], home: str) -> dict[str, str]:
        """The minimal environment of every container."""
        server = urlsplit(self._server)
        port = str(server.port or {"https": 443}.get(server.scheme, 80))
        return {
            "PATH": f"{self._settings.programs}:{os.environ.get('PATH', os.defpath)}",
            "HOME": home,
            "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "KUBERNETES_PORT": f"tcp://{server.hostname}:{port}",
        }

    def _fresh_folder(self, uid: str, container: str, instance: int) -> Path:
        folder = self._settings.instance(uid, container, instance)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        outdated = instance - KEPT_INSTANCES
        if outdated >= 0:
            shutil.rmtree(self._settings.instance(uid, container, outdated), ignore_errors=True)
            log = self._settings.log(uid, container, outdated)
            log.unlink(missing_ok=True)
            log.with_name(f"{log.name}.1").unlink(missing_ok=True)
        return folder
