"""A lab as a whole: starting, supervising, inspecting and stopping it."""
