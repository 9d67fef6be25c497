"""Kubernetes' errors: an exception that carries a Status object, and a constructor per reason.

The messages are those of Kubernetes, because people and scripts search for them.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object


class StatusCause(Struct, frozen=True):
    """One invalid field: `reason` as in field.ErrorType, `message` without the field's name."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> StatusCause:
    return StatusCause(field, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def invalid_value(field: str, value: object, detail: str) -> StatusCause:
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return StatusCause(field, f"Invalid value: {shown}: {detail}")


def unsupported_value(field: str, value: object, allowed: Iterable[str]) -> StatusCause:
    listed = ", ".join(f'"{value}"' for value in sorted(allowed))
    return StatusCause(field, f'Unsupported value: "{value}": supported values: {listed}', "FieldValueNotSupported")


def forbidden_field(field: str, detail: str) -> StatusCause:
    return StatusCause(field, f"Forbidden: {detail}", "FieldValueForbidden")


class ApiError(Exception):
    """An unsuccessful answer. `code` is the HTTP status."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> Object:
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        body["code"] = self.code
        return body


def success(details: Object) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def qualified(plural: str, group: str) -> str:
    """The name of a resource or kind as in Kubernetes' messages: `pods`, `deployments.apps`."""
    return f"{plural}.{group}" if group else plural


def _details(name: str, group: str, kind: str, **more: Any) -> Object:
    return {key: value for key, value in {"name": name, "group": group, "kind": kind, **more}.items() if value}


def not_found(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, group, plural))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, group, plural))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(plural: str, group: str, name: str, why: str = MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(name, group, plural))


def forbidden(plural: str, group: str, name: str, why: str, causes: list[Object] | None = None) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(name, group, plural, causes=causes))


def invalid(kind: str, group: str, name: str, causes: list[StatusCause]) -> ApiError:
    listed = str(causes[0]) if len(causes) == 1 else "[" + ", ".join(map(str, causes)) + "]"
    details = _details(
        name,
        group,
        kind,
        causes=[{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes],
    )
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def expired(asked: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def method_not_allowed(verb: str, plural: str) -> ApiError:
    message = f"{verb} is not supported on resources of kind {plural!r}".replace("'", '"')
    return ApiError(405, "MethodNotAllowed", message, {"kind": plural})


def unsupported_media(accepted: Iterable[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return ApiError(415, "UnsupportedMediaType", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def internal(message: str) -> ApiError:
    causes = [{"message": message}]
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": causes})
