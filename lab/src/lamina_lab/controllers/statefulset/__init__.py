"""The StatefulSet controller: pods with stable names, and the revisions of their template."""
