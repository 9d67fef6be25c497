"""How fast the controller decides, how much memory it needs and how soon it is ready, in a large and full cluster."""
