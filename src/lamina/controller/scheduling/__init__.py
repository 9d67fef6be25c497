"""Which nodes fit a pod, how well, and which shares it would get there."""
