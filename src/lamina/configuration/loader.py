"""Reading the text of a configuration: Lamina's own form, or a form that is imported."""

from typing import Any

from lamina.configuration import strict
from lamina.configuration.conversion import to_config
from lamina.configuration.fields import KIND, Configuration
from lamina.configuration.form import form
from lamina.configuration.importers import unversioned
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.api_group import API_VERSION
from lamina.core.config import Config
from lamina.errors import BadInput

DEFAULT = to_config(form().configuration(api_version=API_VERSION, kind=KIND), "the default")


def load(text: str, where: str) -> Config:
    """The settings that follow from `text` (YAML); an empty text is the default. `where` names it in errors.

    Raises BadInput with one sentence: what is wrong, in which field, and what is allowed. Nothing is applied in part.
    """
    return to_config(read(text, where), where)


def read(text: str, where: str) -> Configuration:
    """The configuration in `text` in Lamina's own form, imported if it is written in another one. Raises BadInput."""
    document: dict[str, Any] = load_mapping(text, where)
    if not {"apiVersion", "kind"} & document.keys():
        return unversioned.read(document, where)
    header = {key: document.get(key) for key in ("apiVersion", "kind")}
    if header != {"apiVersion": API_VERSION, "kind": KIND}:
        raise BadInput(
            f"{where}: apiVersion and kind must be {API_VERSION} and {KIND}, got {header['apiVersion']} and "
            f"{header['kind']}"
        )
    kind = form().configuration
    return strict.decode(strict.without_empty_keys(document, kind), kind, where)
