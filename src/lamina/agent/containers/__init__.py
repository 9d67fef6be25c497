"""The files that a container gets on the node.

paths       where they are, and grant -> limits and usage files
file_mount  the file system of the files that containers write
libraries   the facade, one folder per version
cdi         CDI specs
"""
