"""Names that components, their installation and the commands agree on: API group, objects, files, documentation."""

from typing import Final

GROUP: Final = "lamina.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "lamina.dev/v1alpha1"
"""The API group of Lamina's objects and configuration."""

SITE: Final = "https://lamina.dev/docs"
"""The address of the documentation, without a slash at its end."""

DEFAULT_NAMESPACE = "lamina-system"
"""Where Lamina is installed, unless the installation names another namespace."""
LEADER_LEASE, TURNS_LEASE = "lamina-controller", "lamina-turns"
LEADER_LABEL = "lamina.dev/leader"
"""What the Service of the extender selects the leader by."""

WEBHOOKS = "lamina.dev"
"""The MutatingWebhookConfiguration."""
ADMISSION_SERVICE, ADMISSION_SECRET = "lamina-admission", "lamina-admission"

EXTENDER_SECRET, EXTENDER_CLIENT_SECRET = "lamina-extender", "lamina-extender-client"
CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE = "tls.crt", "tls.key", "ca.crt"
"""The names of files in a directory, as Secrets of the type kubernetes.io/tls have them."""

FILTER_TO_BEST = "filter-to-best"
"""Answers as filter does, with only the best of the nodes that fit where nothing but the policy tells them apart."""
PRIORITIZE_WITHOUT_GPUS = "prioritize-without-gpus"
"""Asked about all pods of Lamina's profiles, and answered about those that request no GPU."""


def documentation(page: str) -> str:
    """The address of a page of docs/ on the site, such as how-to/alerts.md or how-to/alerts.md#laminanoleader."""
    path, hash_, anchor = page.partition("#")
    return f"{SITE}/{path.removesuffix('.md').removesuffix('/index')}/{hash_}{anchor}"


def extender_name(namespace: str) -> str:
    """The name in the extender's certificate, whatever the address by which a client reaches it."""
    return f"lamina-controller.{namespace}.svc"
