"""What happens before a container starts: find its owner, decide what it needs, and make it.

ticket_owner       tickets -> pod and container
plan               what to make, as plain data
mode_check         no GPU in two modes at once
ticket_preparer    containers with a grant
native_preparer    containers with native devices
stale_devices      containers with devices that the node no longer advertises
allocate_response  the answer to Allocate for native devices
"""
