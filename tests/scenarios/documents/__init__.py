"""The documents that users followed, each as one script: from its first block to its last, in order, as it stands."""
