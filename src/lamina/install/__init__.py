"""Installation: one description of all objects, rendered as manifests for one cluster or as a Helm chart for any.

`values` are what a user may set. `terms` are placeholders in the objects where a value or a condition decides.
`objects` lists all objects. `render` evaluates the description for given values and a Kubernetes version, `chart`
writes it as templates. The results for default values are in `deploy/`.
"""
