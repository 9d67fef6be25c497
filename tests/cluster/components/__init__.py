"""The cluster under test: real Kubernetes on one machine, in namespaces of its own, with simulated GPUs.

    binaries     where the programs come from; debian and building fetch and make them once, into a cache
    sandboxes    namespaces that end with the process that opened them: one for the control plane, one per node
    network      a bridge between the sandboxes
    daemons      programs that run in a sandbox
    control      etcd, kube-apiserver, kube-controller-manager, kube-scheduler
    node         containerd, kubelet and kube-proxy of one node, with its disk and GPUs
    images       images made of files, without an engine or a registry
    guard        removes what would outlive the namespaces, however the cluster ends
    cluster      all of it

Needs root, and no more rights than to make namespaces and cgroups.
"""
