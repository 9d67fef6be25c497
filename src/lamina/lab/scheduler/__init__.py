"""The lab's scheduler: kube-scheduler's way of placing one pod after another, with the same calls to an extender."""
