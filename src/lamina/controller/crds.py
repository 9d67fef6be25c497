"""Creation and update of the CustomResourceDefinitions of Inventory and Grant."""

import logging

from lamina.core.definitions import custom_resource_definitions
from lamina.ports.kube import CUSTOM_RESOURCE_DEFINITIONS, AlreadyExists, Kube, NotFound
from lamina.ports.kube.merge_patch import includes

log = logging.getLogger(__name__)


async def apply(kube: Kube) -> None:
    """Write the definitions that are missing or differ. Raises Outside where that is not allowed."""
    for wanted in custom_resource_definitions():
        name = wanted["metadata"]["name"]
        try:
            present = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        except NotFound:
            try:
                await kube.create(CUSTOM_RESOURCE_DEFINITIONS, wanted)
                log.info("Created the CustomResourceDefinition %s", name)
                continue
            except AlreadyExists:
                present = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        if not includes(present["spec"], wanted["spec"]):
            metadata = wanted["metadata"] | {"resourceVersion": present["metadata"]["resourceVersion"]}
            await kube.replace(CUSTOM_RESOURCE_DEFINITIONS, wanted | {"metadata": metadata})
            log.info("Updated the CustomResourceDefinition %s", name)
