"""Resizing running containers: what users ask for, and the changes of grants that follow."""
