"""The node controller: conditions, taints and eviction."""
