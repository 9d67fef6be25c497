"""Pods that wait for a node, and the changes that make another attempt worthwhile."""
