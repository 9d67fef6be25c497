"""ResourceQuotas of namespaces on GPU memory and compute."""
