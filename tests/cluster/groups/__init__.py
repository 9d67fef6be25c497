"""Pod groups placed by the real kube-scheduler and the real controller. No kubelet runs: pods are only bound."""
