"""Importers: configurations and files that were written for other systems, as a Configuration. Pure.

tables            what a table of keys is, and how it is applied
unversioned       a document without apiVersion, in which these keys and the values of 4paradigm's chart may stand
hami              HAMi's device configuration and its list of nodes
volcano           Volcano's device configuration
published         files of other systems as those publish them, which only commands read
nvidia_plugin, volcano_scheduler, devices, chart_values
                  their forms: what is taken from each, and an answer to the rest
values_of_others  answers to values of other charts
"""
