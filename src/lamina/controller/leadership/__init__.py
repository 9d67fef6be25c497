"""Which replica leads: the election, the label on the leading pod, and whether this replica may answer."""
