"""Resource claims in the kubelet: drivers that register, and claims that they prepare for pods."""
