"""Making GPUs idle by moving pods: what to move, and how it is done. `lamina defrag` and the controller share it."""
