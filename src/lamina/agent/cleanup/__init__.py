"""Removal of what the agent made.

release         when a pod is gone
survivors       publishes pods that are gone while their processes run
pod_watch       follows the node's pods for that
pod_processes   tells which pods have processes
reconciliation  at the start: files that the record does not know
leftovers       at uninstall
"""
