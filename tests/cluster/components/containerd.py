"""containerd's configuration on a node.

The form is that of containerd 1.x, which 2.x reads as well. Containers run under the stand-in of NVIDIA's runtime.
"""

from pathlib import Path

SOCKET = "/run/containerd/containerd.sock"
PAUSE = "stage.local/pause:1"

_TEXT = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
oom_score = 0
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true
disable_apparmor = true
enable_cdi = true
cdi_spec_dirs = ["/var/run/cdi"]
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{cni_config}"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "{runtime}"
SystemdCgroup = false
"""


def write(folder: Path, *, cni: Path, cni_config: Path, runtime: Path) -> Path:
    """Write the configuration; `runtime` is the OCI runtime, a program."""
    path = folder / "containerd.toml"
    path.write_text(_TEXT.format(socket=SOCKET, pause=PAUSE, cni=cni, cni_config=cni_config, runtime=runtime))
    return path
