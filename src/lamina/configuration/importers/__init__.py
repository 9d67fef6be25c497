"""Importers: configurations written for other systems, and Lamina's own keys from before v1alpha1, as a Configuration.

unversioned       a document without apiVersion, in which all of these keys may stand side by side
hami              HAMi's device configuration and its list of nodes
chart_4paradigm   the values of 4paradigm's chart, in terms of HAMi's keys
volcano           Volcano's device configuration
"""
