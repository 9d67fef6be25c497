"""The few controllers that the lab's scenarios and kubectl need: workloads become pods, silent nodes are noticed."""
