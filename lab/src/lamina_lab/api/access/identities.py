"""Who a request is from, and whether it is allowed."""

import hmac
from collections.abc import Collection, Mapping

from lamina_lab.api.access.rbac import Attributes, Roles
from lamina_lab.api.access.tokens import AUDIENCE, AccountTokens, TokenHolder
from lamina_lab.api.access.users import ADMIN, User, impersonated
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import unauthorized


class Identities:
    """The users of one API server: the bearer of `admin_token`, who may do everything, and service accounts."""

    def __init__(self, admin_token: str, store: Store, catalog: Catalog) -> None:
        self._admin_token = admin_token
        self.tokens = AccountTokens(store, catalog)
        self.roles = Roles(store, catalog)

    def holder(self, token: str, audiences: Collection[str] = ()) -> TokenHolder | None:
        """Whose token this is, if it holds for one of the audiences, by default the API server itself."""
        if hmac.compare_digest(token.encode(), self._admin_token.encode()):
            return TokenHolder(ADMIN, (AUDIENCE,)) if not audiences or AUDIENCE in audiences else None
        return self.tokens.holder(token, audiences)

    def user(self, headers: Mapping[str, str], groups: Collection[str]) -> User:
        """Who asks, by the headers of a request; `groups` are those to impersonate. Raises 401 and 403."""
        kind, _, token = headers.get("Authorization", "").partition(" ")
        holder = self.holder(token) if kind.lower() == "bearer" else None
        if holder is None:
            raise unauthorized()
        name = headers.get("Impersonate-User", "")
        if not name:
            return holder.user
        for resource, what in (("users", name), *(("groups", group) for group in groups)):
            self.check(holder.user, Attributes("impersonate", resource=resource, name=what))
        return impersonated(name, tuple(groups))

    def check(self, user: User, asked: Attributes) -> None:
        """Raises 403 where no role of the user allows it."""
        if not self.roles.allow(user, asked):
            raise asked.refusal(user)
