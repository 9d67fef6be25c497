"""Resource claims of pods in the scheduler: what each node could give them, and the writes that allocate them."""
