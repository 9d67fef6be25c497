"""What is free on every node, of its GPUs and of its host, and which pods usually come."""
