"""The control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kube-proxy, in one sandbox.

kube-proxy is there so that the API server reaches webhooks by their Service, and the scheduler its extenders.
"""

from pathlib import Path

import yaml

from tests.cluster.components import network, proxy
from tests.cluster.components.api_socket import ApiSocket, Object
from tests.cluster.components.audit import Audit
from tests.cluster.components.binaries import Binaries
from tests.cluster.components.certificates import Authority
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.sandboxes import Sandbox

SERVER = f"https://{network.CONTROL}:6443"
ETCD = "http://127.0.0.1:2379"


class ControlPlane:
    """The programs by name; any of them may be stopped and started by tests."""

    def __init__(self, folder: Path, binaries: Binaries) -> None:
        self.folder, self._binaries = folder, binaries
        self.sandbox = Sandbox("control", {})
        network.make_bridge(self.sandbox)
        self.authority = Authority(folder / "certificates", SERVER)
        self.kubeconfig = self.authority.kubeconfig("admin", "admin", ("system:masters",))
        self.api = ApiSocket(self.sandbox, binaries["kubectl"], self.kubeconfig, binaries.environment, folder)
        self.audit = Audit(folder)
        self.etcd = self._daemon("etcd", self._etcd())
        self.apiserver = self._daemon("kube-apiserver", self._apiserver())
        self.controllers = self._daemon("kube-controller-manager", self._controllers())
        self.scheduler = self._daemon("kube-scheduler", self._scheduler())
        config = proxy.write(folder / "proxy.yaml", "control", self.authority)
        self.proxy = self._daemon("kube-proxy", ["--config", config])

    def start(self) -> None:
        """Start everything, and return when the API server answers."""
        self.etcd.start()
        self.apiserver.start()
        self.wait()
        for daemon in (self.controllers, self.scheduler, self.proxy):
            daemon.start()

    def wait(self) -> None:
        """Until the API server answers."""
        self.apiserver.until(self._answers, "an answer of the API server")

    def kubectl(self, *arguments: str, stdin: str = "", timeout: float = 60) -> str:
        """Standard output of kubectl. Raises Unavailable with what it said."""
        cache = self.folder / "kubectl"
        words = [self._binaries["kubectl"], "--kubeconfig", self.kubeconfig, "--cache-dir", cache, *arguments]
        return self.sandbox.run(*words, env=self._binaries.environment, stdin=stdin, timeout=timeout)

    def read(self, path: str) -> Object:
        """What the API server has at a `Resource.path`. Raises Unavailable, and Missing where it has nothing."""
        return self.api.ask("GET", f"/{path}")

    def _answers(self) -> bool:
        try:
            return self.kubectl("get", "--raw", "/readyz", timeout=10) == "ok"
        except Unavailable:
            return False

    def _daemon(self, name: str, arguments: list[str | Path]) -> Daemon:
        log = self.folder / "logs" / f"{name}.log"
        return Daemon(self.sandbox, name, [self._binaries[name], *arguments], self._binaries.environment, log)

    def _etcd(self) -> list[str | Path]:
        return [
            *("--data-dir", self.folder / "etcd"),
            *("--listen-client-urls", ETCD),
            *("--advertise-client-urls", ETCD),
            *("--listen-peer-urls", "http://127.0.0.1:2380"),
            "--unsafe-no-fsync",
        ]

    def _apiserver(self) -> list[str | Path]:
        hosts = (network.CONTROL, network.FIRST_SERVICE, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        serving = self.authority.signed("apiserver", "kube-apiserver", hosts=hosts)
        kubelets = self.authority.signed("to-kubelets", "apiserver", ("system:masters",))
        accounts = self.authority.account_key()
        return [
            f"--etcd-servers={ETCD}",
            f"--advertise-address={network.CONTROL}",
            f"--service-cluster-ip-range={network.SERVICES}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--kubelet-certificate-authority={self.authority.certificate}",
            f"--kubelet-client-certificate={kubelets.certificate}",
            f"--kubelet-client-key={kubelets.key}",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--cert-dir={self.folder}",
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            *self.audit.arguments(),
            *self._front_proxy(),
        ]

    def _front_proxy(self) -> list[str]:
        """Which proxies it trusts to name the user, as servers with an API of their own need to know."""
        authority = Authority(self.folder / "front-proxy", SERVER)
        client = authority.signed("client", "front-proxy-client")
        return [
            f"--requestheader-client-ca-file={authority.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={client.certificate}",
            f"--proxy-client-key-file={client.key}",
        ]

    def _controllers(self) -> list[str | Path]:
        config = self.authority.kubeconfig("controllers", "system:kube-controller-manager")
        return [
            f"--kubeconfig={config}",
            f"--service-account-private-key-file={self.folder / 'certificates/accounts.key'}",
            f"--root-ca-file={self.authority.certificate}",
            f"--cluster-signing-cert-file={self.authority.certificate}",
            f"--cluster-signing-key-file={self.authority.key}",
            f"--cert-dir={self.folder}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
        ]

    def _scheduler(self) -> list[str | Path]:
        """Kubernetes' own scheduler as it is; other schedulers are pods, or programs that tests start."""
        config = self.authority.kubeconfig("scheduler", "system:kube-scheduler")
        path = self.folder / "scheduler.yaml"
        version = "v1beta1" if self._binaries.version < (1, 25) else "v1"
        document = {
            "apiVersion": f"kubescheduler.config.k8s.io/{version}",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(config)},
            "leaderElection": {"leaderElect": False},
        }
        path.write_text(yaml.safe_dump(document))
        return [f"--config={path}", f"--cert-dir={self.folder}"]
