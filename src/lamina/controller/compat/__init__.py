"""Annotations and metrics under the names that tools of other GPU sharing systems expect."""
