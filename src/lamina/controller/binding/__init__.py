"""Binding pods to nodes: the grant, the turn, and the grants that failed attempts leave behind."""
