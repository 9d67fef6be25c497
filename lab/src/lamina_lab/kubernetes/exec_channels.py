"""The channels of an exec session: the first byte of each frame between the API server and a kubelet."""

STDIN = 0
STDOUT = 1
STDERR = 2
ERROR = 3  # one frame ends the session: a Status object in JSON, with the exit code as Kubernetes' v4 protocol has it
RESIZE = 4  # JSON {"Width": columns, "Height": rows}
CLOSE = 255  # the next byte names the channel to close, as in v5.channel.k8s.io; only stdin is ever closed this way
