"""Who asks: the user of the lab's kubeconfig, a service account, or whom an administrator impersonates."""

from collections.abc import Mapping

from msgspec import Struct

from lamina.ports.kube import Object

AUTHENTICATED, MASTERS = "system:authenticated", "system:masters"
_ACCOUNTS = "system:serviceaccounts"
_ACCOUNT = "system:serviceaccount:"


class User(Struct, frozen=True):
    """A user as Kubernetes knows it: by name and groups."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def info(self) -> Object:
        """The UserInfo that reviews answer with."""
        fields: Object = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        fields["extra"] = {key: list(values) for key, values in self.extra.items()}
        return {key: value for key, value in fields.items() if value}


ADMIN = User("lab-admin", (MASTERS, AUTHENTICATED))
"""The user of the lab's kubeconfig, who may do everything."""


def service_account(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> User:
    """The user that a service account is."""
    groups = _ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED
    return User(f"{_ACCOUNT}{namespace}:{name}", groups, uid, extra)


def impersonated(name: str, groups: tuple[str, ...]) -> User:
    """The user that `kubectl --as` and `--as-group` name. A service account has its own groups if none are named."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and account and not groups:
        return service_account(namespace, account, "", {})
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))
