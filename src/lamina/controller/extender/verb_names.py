"""Names of verbs that Lamina's configuration of kube-scheduler must agree on with the extender."""

FILTER_TO_BEST = "filter-to-best"
"""Answers as filter does, with only the best of the nodes that fit where nothing but the policy tells them apart."""
PRIORITIZE_WITHOUT_GPUS = "prioritize-without-gpus"
"""Asked about all pods of Lamina's profiles, and answered about those that request no GPU."""
