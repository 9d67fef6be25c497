"""Removal of what the agent made.

release    when a pod is gone
survivors  publishes pods that are gone while their processes run
pod_watch  follows the node's pods for that
leftovers  at the start: files that the record does not know; at uninstall: all
"""
