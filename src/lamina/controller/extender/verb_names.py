"""Names of verbs that Lamina's configuration of kube-scheduler must agree on with the extender."""

PRIORITIZE_WITHOUT_GPUS = "prioritize-without-gpus"
"""Asked about all pods of Lamina's profiles, and answered about those that request no GPU."""
