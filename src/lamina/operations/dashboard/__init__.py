"""`lamina dashboard`: a page that shows GPUs, shares and waiting pods while they change.

`feed` follows the cluster, `document` computes what the page shows, `board` holds the latest of it, and `server` sends
it to browsers on this machine. Nothing here writes to the cluster.
"""
