"""What a lab keeps on the machine: its directory, its state file and its processes."""
