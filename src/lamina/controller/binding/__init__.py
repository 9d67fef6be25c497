"""Binding pods to nodes: the grant, the Lease of the node, and the grants that failed attempts leave behind."""
