"""Programs of random driver calls, each made with and without the facade, and what a program can notice compared."""
