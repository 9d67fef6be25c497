"""Reading the text of a configuration: Lamina's own form, or a form that is imported."""

from typing import Any

from lamina.configuration import strict
from lamina.configuration.checks import checked
from lamina.configuration.form import form
from lamina.configuration.importers import unversioned
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.component_names import API_VERSION
from lamina.core.config import KIND, Config
from lamina.errors import BadInput

DEFAULT = form().configuration(api_version=API_VERSION, kind=KIND)


def load(text: str, where: str) -> Config:
    """The configuration in `text` (YAML), imported if it has another form; an empty text is the default.

    `where` names it in errors. Raises BadInput with one sentence: what is wrong, in which field, and what is
    allowed. Nothing is applied in part.
    """
    return checked(_read(text, where), where)


def _read(text: str, where: str) -> Config:
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
