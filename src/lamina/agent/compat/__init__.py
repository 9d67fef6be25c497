"""Labels, annotations and extended resources that tools of other systems expect on a node. Lamina does not read them.

node_watch  labels, annotations and cordoned GPUs of the Node object
desired     what dialects write, amounts of the resources that pods name next to tickets, and the patches that set them
reconciler  keeps the node as desired
"""
