"""What happens before a container starts: find out which it is, decide what it needs, and make it.

container_identity  tickets -> pod and container
plan                what to make, as plain data
ticket_preparer     the plan for containers with a grant
native_preparer     the plan for containers with native devices
steps               check, record, and make what the plan says
allocate_response   the answer to Allocate for native devices
"""
