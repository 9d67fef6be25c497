"""The lab's scheduler: places one pod after another as kube-scheduler does, with the same calls to an extender."""
