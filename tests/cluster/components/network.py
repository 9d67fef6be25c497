"""Addresses, and the wires between sandboxes: a bridge in the control plane's, a cable from it to each node.

Pods are reached by routes through their node. All addresses exist in the cluster's own network namespaces alone.
"""

import json
from contextlib import suppress
from pathlib import Path

from tests.cluster.components.commands import Unavailable
from tests.cluster.components.sandboxes import Sandbox

BRIDGE = "br0"
CONTROL = "10.231.0.1"
SERVICES = "10.233.0.0/16"
FIRST_SERVICE = "10.233.0.1"
"""What the service `kubernetes` has."""
NAMES = "10.233.0.10"
"""Where pods would ask for names. No one answers there: a cluster has no DNS."""
PODS = "10.232.0.0/16"


def node_address(number: int) -> str:
    return f"10.231.0.{10 + number}"


def cable_to(number: int) -> str:
    """The cable's name at its end on the bridge."""
    return f"node{number}"


def pods_of(number: int) -> str:
    """Where the addresses of a node's pods come from."""
    return f"10.232.{number}.0/24"


def make_bridge(control: Sandbox) -> None:
    control.run("ip", "link", "add", BRIDGE, "type", "bridge")
    control.run("ip", "address", "add", f"{CONTROL}/24", "dev", BRIDGE)
    control.run("ip", "link", "set", BRIDGE, "up")
    # A packet to a Service needs some route before kube-proxy's rules give it another address.
    control.run("ip", "route", "add", SERVICES, "dev", BRIDGE)


def plug_in(control: Sandbox, node: Sandbox, number: int, count: int) -> None:
    """A cable from the bridge to node `number` of `count`, and its routes to the pods of the others."""
    cable = cable_to(number)
    control.run_outside_pids("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
    control.run("ip", "link", "set", cable, "master", BRIDGE, "up")
    control.run("ip", "route", "replace", pods_of(number), "via", node_address(number))
    node.run("ip", "address", "add", f"{node_address(number)}/24", "dev", "eth0")
    node.run("ip", "link", "set", "eth0", "up")
    node.run("ip", "route", "add", "default", "via", CONTROL)
    for other in range(1, count + 1):
        if other != number:
            node.run("ip", "route", "add", pods_of(other), "via", node_address(other))
    node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def unplug(control: Sandbox, number: int) -> None:
    """Take the cable to node `number` away, whose sandbox has ended.

    The kernel takes it away too, but only when it gets to the old sandbox's network, and until then the cable's name
    is in use.
    """
    with suppress(Unavailable):  # the kernel was faster
        control.run("ip", "link", "delete", cable_to(number))


def write_cni(folder: Path, number: int) -> None:
    """How containerd connects pods: each by a cable of its own to the node, which routes."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses = {
        "type": "host-local",
        "subnet": pods_of(number),
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni/addresses",
    }
    document = {
        "cniVersion": "0.4.0",
        "name": "stage",
        "plugins": [{"type": "ptp", "ipam": addresses}, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }
    (folder / "10-stage.conflist").write_text(json.dumps(document, indent=1))
