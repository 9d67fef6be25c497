"""What roles and bindings may grant: nothing that their author does not have.

The verbs `escalate` on roles and `bind` on a role lift this, and so does the group system:masters.
"""

from collections.abc import Iterable, Iterator

from lamina.ports.kube import Object
from lamina_lab.api.access.rbac import EVERY_PATH, EVERYTHING, Attributes, Roles, allows
from lamina_lab.api.access.users import MASTERS, User
from lamina_lab.api.storage.verbs import AdmissionAttributes, AdmissionChain, Call
from lamina_lab.kubernetes.errors import forbidden

_TRIES = "is attempting to grant RBAC permissions not currently held"
GROUP = "rbac.authorization.k8s.io"
_COLLECTED = ("ownerReferences", "finalizers", "resourceVersion", "managedFields", "generation")
"""The metadata that garbage collection changes."""


class EscalationCheck:
    """Admission of roles and bindings, followed by all other admission."""

    def __init__(self, roles: Roles, then: AdmissionChain) -> None:
        self._roles = roles
        self._then = then

    async def mutate(self, review: AdmissionAttributes, call: Call) -> Object:
        return await self._then.mutate(review, call)

    async def validate(self, review: AdmissionAttributes, call: Call) -> None:
        """Raises 403 for a role or binding that grants more than its author has."""
        if review.resource.group == GROUP and review.new is not None and MASTERS not in call.groups:
            self._check(review, review.new, User(call.user, call.groups))
        await self._then.validate(review, call)

    def _check(self, review: AdmissionAttributes, new: Object, author: User) -> None:
        if review.old is not None and _without_collection(new) == _without_collection(review.old):
            return
        plural, name, namespace = review.resource.plural, new["metadata"]["name"], _namespace(new)
        reference = new.get("roleRef")
        if reference is None:
            on = name if review.old is not None else ""  # a request to create names nothing
            lifted, rules = Attributes("escalate", GROUP, plural, on, namespace), new.get("rules") or []
        else:
            kind = f"{reference['kind'].lower()}s"
            lifted = Attributes("bind", GROUP, kind, reference["name"], namespace)
            rules = []
        if self._roles.allow(author, lifted):
            return
        if reference is not None:
            rules = list(self._roles.referenced(reference, namespace))
        if missing := self._missing(author, namespace, rules):
            groups = " ".join(f'"{group}"' for group in author.groups)
            why = (
                f'user "{author.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:'
            )
            raise forbidden(plural, GROUP, name, "\n".join([why, *sorted(_described(missing))]))
        aggregation = new.get("aggregationRule")
        changed = aggregation and aggregation != (review.old or {}).get("aggregationRule")
        if changed and self._missing(author, "", [EVERYTHING, EVERY_PATH]):
            raise forbidden(plural, GROUP, name, "must have cluster-admin privileges to use the aggregationRule")

    def _missing(self, author: User, namespace: str, rules: Iterable[Object]) -> list[Attributes]:
        own = list(self._roles.rules(author, namespace))
        wanted = dict.fromkeys(part for rule in rules for part in _parts(rule))
        return [part for part in wanted if not any(allows(rule, part) for rule in own)]


def _namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _without_collection(obj: Object) -> Object:
    kept = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTED}
    return {**obj, "metadata": kept}


def _parts(rule: Object) -> Iterator[Attributes]:
    """Each single thing that a rule allows."""
    for verb in rule.get("verbs") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Attributes(verb, group, resource, name)
        for path in rule.get("nonResourceURLs") or ():
            yield Attributes(verb, path=path)


def _described(missing: Iterable[Attributes]) -> Iterator[str]:
    """Rules as Kubernetes prints them, with all verbs of the same resource in one."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for part in missing:
        if part.path:
            yield f'{{NonResourceURLs:["{part.path}"], Verbs:["{part.verb}"]}}'
        else:
            verbs.setdefault((part.group, part.resource, part.name), []).append(part.verb)
    for (group, resource, name), found in verbs.items():
        named = f', ResourceNames:["{name}"]' if name else ""
        listed = " ".join(f'"{verb}"' for verb in found)
        yield f'{{APIGroups:["{group}"], Resources:["{resource}"]{named}, Verbs:[{listed}]}}'
