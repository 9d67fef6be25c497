"""What the kubelet knows, as plain data: settings, records of containers, back-off."""
