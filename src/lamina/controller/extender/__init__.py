"""The extender of kube-scheduler over HTTP: filter, prioritize, preempt and bind."""
