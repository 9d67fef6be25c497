"""kube-proxy's configuration: Services by iptables, and no settings of the machine touched."""

from pathlib import Path

import yaml

from tests.cluster.components import network
from tests.cluster.components.certificates import Authority


def write(path: Path, host: str, authority: Authority) -> Path:
    """Write the configuration of kube-proxy on `host`, and its credentials next to it."""
    kubeconfig = authority.kubeconfig(f"proxy-{host}", "system:kube-proxy")
    document = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": host,
        "clusterCIDR": network.PODS,
        "mode": "iptables",
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    path.write_text(yaml.safe_dump(document))
    return path
