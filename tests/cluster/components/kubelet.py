"""Kubelet's configuration, for versions from 1.20 on."""

from pathlib import Path
from typing import Any

import yaml

from tests.cluster.components import network
from tests.cluster.components.certificates import Authority
from tests.cluster.components.containerd import SOCKET

Version = tuple[int, int]


def arguments(
    folder: Path, node: str, number: int, group: str, authority: Authority, version: Version
) -> list[str | Path]:
    """Write the configuration of kubelet on node `number`, and say how kubelet is called. `group` holds its pods."""
    serving = authority.signed(f"kubelet-{node}", node, hosts=(node, network.node_address(number)))
    resolv = folder / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\n")
    document: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.node_address(number),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group}",
        "failSwapOn": False,
        "resolvConf": str(resolv),
        "clusterDNS": [network.NAMES],
        "clusterDomain": "cluster.local",
        "oomScoreAdj": 0,
        # Disks of machines that test are often nearly full, and what was imported by hand cannot be fetched again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "1s",
    }
    if version >= (1, 31):
        document["failCgroupV1"] = False
    runtime = [f"--container-runtime-endpoint=unix://{SOCKET}"]
    if version < (1, 27):
        runtime.append("--container-runtime=remote")
    else:
        document["containerRuntimeEndpoint"] = f"unix://{SOCKET}"
        runtime = []
    path = folder / "kubelet.yaml"
    path.write_text(yaml.safe_dump(document))
    login = authority.kubeconfig(f"node-{node}", f"system:node:{node}", ("system:nodes",))
    return [
        f"--config={path}",
        f"--kubeconfig={login}",
        f"--hostname-override={node}",
        f"--node-ip={network.node_address(number)}",
        *runtime,
    ]
