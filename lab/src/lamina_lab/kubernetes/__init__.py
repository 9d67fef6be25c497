"""Rules of the Kubernetes API that several components share: objects, selectors, taints, quantities, errors."""
