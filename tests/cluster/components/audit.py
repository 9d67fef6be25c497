"""The API server's log of what the parts of an installation asked for, and what it answered."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from lamina.core.component_names import DEFAULT_NAMESPACE

NAMESPACE = os.environ.get("LAMINA_TEST_NAMESPACE", DEFAULT_NAMESPACE)
"""Where the tests install Lamina."""
_ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:"


class Asked(NamedTuple):
    """One request of an account of ours. `resource` is plural.group/subresource, as in the table of rights."""

    account: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int


class Audit:
    """Its policy and its log, in the folder of the control plane."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit.yaml", folder / "logs" / "audit.log"

    def arguments(self) -> list[str]:
        """The options of the API server; writes the policy."""
        ours = {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]}
        head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
        policy = head | {"omitStages": ["RequestReceived"], "rules": [ours, {"level": "None"}]}
        self._policy.write_text(yaml.safe_dump(policy))
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"]

    def asked(self) -> Iterator[Asked]:
        """All requests for resources until now; a watch stands there twice, by its beginning and by its end."""
        for line in self._log.read_text().splitlines() if self._log.exists() else ():
            event = json.loads(line)
            about = event.get("objectRef")
            if about is None or "resource" not in about:
                continue
            group = f".{about['apiGroup']}" if about.get("apiGroup") else ""
            subresource = f"/{about['subresource']}" if about.get("subresource") else ""
            yield Asked(
                account=event["user"]["username"].removeprefix(_ACCOUNTS),
                verb=event["verb"],
                resource=f"{about['resource']}{group}{subresource}",
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
                code=event["responseStatus"]["code"],
            )
