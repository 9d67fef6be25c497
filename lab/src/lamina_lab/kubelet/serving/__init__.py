"""The kubelet's HTTP server: logs and exec."""
