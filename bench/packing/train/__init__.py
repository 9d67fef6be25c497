"""How the weights of the packing policy are found."""
