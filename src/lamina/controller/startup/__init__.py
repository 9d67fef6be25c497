"""What a replica does before it serves: define the custom resources and read a valid configuration."""
