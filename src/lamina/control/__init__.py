"""The control part, one per cluster: admission of pods, the scheduler's extender, and the ledger between them."""
