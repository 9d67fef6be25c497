"""A small Kubernetes API in one room: what kubectl, our agent and our control part need, and no more."""
