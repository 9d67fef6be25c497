"""What the node's object and Lamina's configuration say.

watch          labels, annotations and cordoned GPUs of the Node object
configuration  Lamina's configuration file or ConfigMap
"""
