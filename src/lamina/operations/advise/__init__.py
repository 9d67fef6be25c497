"""`lamina advise`: which mechanism suits a workload, and which pods to move so that GPUs become idle."""
