"""A small Kubernetes API server in one process: what kubectl, the agent and the controller need."""
