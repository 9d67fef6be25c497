"""How well shares of a GPU's time are held, on simulated GPUs with time slices of 0.2 to 30 ms."""
