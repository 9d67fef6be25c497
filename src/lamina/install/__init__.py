"""Installation: one description of all objects, printed as manifests for one cluster or as a Helm chart for any.

`values` are what people may set, `terms` stand in the objects where a value or a condition decides, `objects` lists all
of them. `render` works a description out for given values and a Kubernetes version, `chart` writes it as templates.
"""
