"""What the kubelet reports to the API server about its node, and events."""
