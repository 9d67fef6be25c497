"""The files that a container gets on the node.

paths       where they are, grant -> limits and usage files, and the facade, one folder per version
file_mount  the file system of the files that containers write
cdi         CDI specs
"""
