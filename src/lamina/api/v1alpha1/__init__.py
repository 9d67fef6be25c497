"""Version v1alpha1 of the API group lamina.dev.

inventory    the spec of an Inventory: what one node has
grant        the spec of a Grant: the shares of one pod
configuration  Lamina's configuration, with `configuration_dialects` and `configuration_devices`
field_types  the types of its values, and how its fields are documented
schema       from a type to the structural schema that Kubernetes wants
definitions  the CustomResourceDefinitions
conversion   between these types and those of `lamina.model`
"""

from typing import Final

GROUP: Final = "lamina.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "lamina.dev/v1alpha1"
