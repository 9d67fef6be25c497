"""Importers: configurations written for other systems, and Lamina's own keys from before v1alpha1, as a Configuration.

tables            what a table of keys is, and how it is applied
unversioned       a document without apiVersion, in which these keys and the values of 4paradigm's chart may stand
hami              HAMi's device configuration and its list of nodes
volcano           Volcano's device configuration
"""
