"""How well shares of a GPU's time are held, on a simulated machine that gives processes turns of 2 ms."""
