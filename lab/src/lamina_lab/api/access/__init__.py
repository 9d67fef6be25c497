"""Access to the API server: its certificates, the kubeconfig, and authorization reviews."""
