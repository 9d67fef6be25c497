"""Decodes Kubernetes objects in protobuf, which some commands of kubectl send. Answers are always JSON.

The decoder reads a table of field numbers instead of generated code for every message of Kubernetes.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339, rfc3339_micro
from lamina_lab.api.protobuf.messages import by_number, messages
from lamina_lab.kubernetes.errors import ApiError, bad_request

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


def decode(body: bytes) -> Object:
    """An object in Kubernetes' protobuf envelope. Raises 400 if it is invalid, 415 for an unknown kind."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body is no Kubernetes protobuf: its first four bytes are wrong")
    try:
        envelope = dict(_raw(body[len(_MAGIC) :]))
        kind = dict(_raw(envelope[1]))
        api_version, name = kind.get(1, b"").decode(), kind.get(2, b"").decode()
        if name not in messages():
            raise _only_json(name)
        return {"kind": name, "apiVersion": api_version, **_message(name, envelope.get(2, b""))}
    except (IndexError, KeyError, AttributeError, UnicodeDecodeError, TypeError) as error:
        raise bad_request(f"the body is no well-formed Kubernetes protobuf: {error}") from error


def _only_json(what: str) -> ApiError:
    """Refuse a kind that is not in the table, because dropping fields would be worse."""
    return ApiError(415, "UnsupportedMediaType", f"{what} is served as JSON alone, not as {MEDIA}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _raw(data: bytes) -> Iterator[tuple[int, Any]]:
    """Fields as (number, integer or bytes)."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, form = tag >> 3, tag & 7
        if form == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if form == 2:
            size, at = _varint(data, at)
        elif form in (1, 5):
            size = 8 if form == 1 else 4
        else:
            raise KeyError(f"wire type {form}")
        if at + size > len(data):
            raise IndexError("a field ends beyond the body")
        yield number, data[at : at + size]
        at += size


def _message(name: str, data: bytes) -> Object:
    fields = by_number(name)
    result: Object = {}
    for number, value in _raw(data):
        field = fields.get(number)
        if field is None and value:
            raise _only_json(f"field {number} of {name}")
        if field is None or field.type == "-":
            continue
        if field.shape == "{}":
            pair = dict(_raw(value))
            key = pair.get(1, b"").decode()
            result.setdefault(field.name, {})[key] = _value(field.type, pair.get(2, b""))
        elif field.shape == "[]":
            result.setdefault(field.name, []).append(_value(field.type, value))
        else:
            found = _value(field.type, value)
            if field.mark == "!":
                result.update(found)
            elif field.mark == "*" or found not in ("", 0, False, None, {}):
                result[field.name] = found
    return result


def _value(kind: str, value: Any) -> Any:
    plain = _PLAIN.get(kind)
    if plain is None and kind not in messages():
        raise _only_json(kind)
    return plain(value) if plain else _message(kind, value)


def _integer(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _moment(write: Callable[[float], str]) -> Callable[[bytes], str | None]:
    def read(value: bytes) -> str | None:
        parts = dict(_raw(value))
        seconds = _integer(parts.get(1, 0)) + _integer(parts.get(2, 0)) / 1e9
        return write(seconds) if value else None

    return read


def _quantity(value: bytes) -> str:
    found: str = dict(_raw(value)).get(1, b"0").decode()
    return found


def _raw_extension(value: bytes) -> Any:
    """Any JSON value, which protobuf carries as its text."""
    text = dict(_raw(value)).get(1, b"")
    return msgspec.json.decode(text) if text else None


def _integer_or_string(value: bytes) -> int | str:
    parts = dict(_raw(value))
    return str(parts.get(3, b"").decode()) if parts.get(1) else _integer(parts.get(2, 0))


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "s": lambda value: value.decode(),
    "y": lambda value: base64.b64encode(value).decode(),
    "i": _integer,
    "b": bool,
    "Time": _moment(rfc3339),
    "MicroTime": _moment(rfc3339_micro),
    "Quantity": _quantity,
    "IntOrString": _integer_or_string,
    "RawExtension": _raw_extension,
}
