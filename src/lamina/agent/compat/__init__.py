"""Labels, annotations and extended resources that tools of other systems expect on a node. Lamina does not read them.

node_watch  labels, annotations and cordoned GPUs of the Node object
reconciler  what dialects write and amounts of resources that pods name next to tickets: keeps the node so
"""
