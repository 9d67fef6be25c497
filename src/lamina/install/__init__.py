"""Installation: a Helm chart, written by hand in deploy/helm/lamina, which `lamina install` renders without Helm.

`values` are what a user may set. `templates` knows the part of Go's template language that the chart uses, and `chart`
makes the objects of it for given values and a Kubernetes version. `rights` reads the roles of the chart.
"""
