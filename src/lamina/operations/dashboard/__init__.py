"""`lamina dashboard`: a page that shows GPUs, shares and waiting pods while they change.

`feed` follows the cluster and `usage_pages` the metrics, `view` and `usage` compute the document that the page shows,
`board` holds the latest of it, and `server` sends it to browsers on this machine. Nothing here writes to the cluster.
"""
