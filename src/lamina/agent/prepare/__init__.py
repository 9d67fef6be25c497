"""What happens before a container starts: find out which it is, decide what it needs, and make it.

container_identity  tickets -> pod and container
plan                what to make, as plain data
ticket_preparer     containers with a grant
native_preparer     containers with native devices
allocate_response   the answer to Allocate for native devices
"""
