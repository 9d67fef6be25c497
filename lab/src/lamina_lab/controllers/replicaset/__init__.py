"""The ReplicaSet controller."""
