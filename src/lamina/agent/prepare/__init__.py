"""What happens before a container starts: find out which it is, decide what it needs, and make it.

container_identity  tickets -> pod and container
plan                what to make, as plain data
preparers           the plan for containers with a grant or with native devices
steps               check, record, and make what the plan says, for claims too
allocate_response   the answer to Allocate for native devices
"""
