"""The panels of each dashboard, with what their figures mean and what to do about them."""

NODE, NAMESPACE = '{node=~"$node"}', '{namespace=~"$namespace"}'
"""What the variables of a dashboard select."""

OF_POD, OF_CLAIM = "namespace, pod, container", "namespace, claim, request"
POD_LEGEND, CLAIM_LEGEND = "{{namespace}}/{{pod}} {{container}}", "{{namespace}}/{{claim}} {{request}}"
GPU_LEGEND = "{{node}} {{gpu}}"
