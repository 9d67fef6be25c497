"""Labels, annotations and extended resources that tools of other systems expect on a node. Lamina does not read them.

amounts     capacities of the resources that pods name next to tickets
desired     these and what dialects write, and the patches that set them
reconciler  keeps the node as desired
"""
