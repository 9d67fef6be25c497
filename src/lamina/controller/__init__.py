"""The controller, one per cluster: admission of pods, the scheduler extender, and the ledger between them."""
