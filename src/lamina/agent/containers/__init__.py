"""The files that a container gets on the node.

paths        where they are
limit_files  grant -> limits and usage files
libraries    the facade, one folder per version
cdi          CDI specs
"""
