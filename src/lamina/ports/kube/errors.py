"""What an API server can answer instead of what was asked. The message is one sentence for a person.

    Outside
    ├── NotFound         no such object, or no such kind
    ├── Conflict         the object changed meanwhile, or is not the one that was meant (its UID differs)
    │   └── AlreadyExists
    ├── Gone             the resourceVersion is too old to watch from
    ├── Refused          not allowed (403), or not valid (400, 422)
    │   ├── NotLoggedIn  the login is missing or has expired (401)
    │   └── LacksRight   roles do not allow it (403)
    └── Unreachable      no answer at all

    BadInput
    └── NoCluster        what a kubeconfig leads to does not answer

Every other answer is an `Outside` itself.
"""

from lamina.errors import BadInput, Outside


class NotFound(Outside):
    """There is no such object."""


class Conflict(Outside):
    """The object is not in the state that the request supposed."""


class AlreadyExists(Conflict):
    """An object of that name exists."""


class Gone(Outside):
    """The history from that resourceVersion on is not kept any more: list again."""


class Refused(Outside):
    """Asking again changes nothing."""


class NotLoggedIn(Refused):
    """The server does not accept the login."""

    exit_code = 4


class LacksRight(Refused):
    """No role of the user allows the request. Admission and quotas refuse as a plain `Refused`."""

    exit_code = 4


class Unreachable(Outside):
    """No answer came; whether the request was carried out is not known."""

    exit_code = 3


class NoCluster(BadInput):
    """The server of a kubeconfig does not answer."""

    exit_code = 3
