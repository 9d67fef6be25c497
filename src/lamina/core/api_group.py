"""The API group of Lamina's objects and configuration."""

from typing import Final

GROUP: Final = "lamina.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "lamina.dev/v1alpha1"
