"""How each line of the log begins, in every process of a component."""

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
