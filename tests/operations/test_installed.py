"""What an apply of `lamina install` does to the configuration of a cluster, and which versions it is for."""

import pytest

from lamina.configuration.yaml_documents import load_mapping
from lamina.errors import BadInput
from lamina.install.versions import NEWEST, OLDEST, parse_version, warning_of
from lamina.operations.installed import InstalledCluster, configuration_change

EDITED = "# by hand\ndevicePlugin:\n  deviceSplitCount: 5\n"


@pytest.mark.parametrize("text", [EDITED, "hami: {unknown: 1}", "{", "[]"])
def test_a_text_stays_where_the_values_have_none(text: str) -> None:
    change = configuration_change({}, InstalledCluster("v1.36.0", text))
    assert change.keep and "is left out and stays as it is" in change.warning


@pytest.mark.parametrize("config", [{}, {"schedulers": ["one"]}])
@pytest.mark.parametrize("text", [None, "same"])
def test_the_same_text_or_none_is_applied_without_a_word(config: dict[str, object], text: str | None) -> None:
    assert configuration_change(config, InstalledCluster("v1.36.0", text and str(config))) == (False, "")


@pytest.mark.parametrize("text", ["", "{}", "# nothing\n"])
def test_an_empty_text_is_no_configuration(text: str) -> None:
    assert configuration_change({}, InstalledCluster("v1.36.0", text)) == (False, "")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (EDITED, "values in schedulers, devicePlugin;"),
        ("schedulers: {served: [two]}", "values in schedulers;"),
        ("schedulers: {served: [one]}\nextra: null", "values in extra;"),
        ("{", "values;"),
    ],
)
def test_values_replace_another_text_and_name_the_difference(text: str, where: str) -> None:
    change = configuration_change(
        load_mapping("schedulers: {served: [one]}", "here"), InstalledCluster("v1.36.0", text)
    )
    assert not change.keep and where in change.warning


@pytest.mark.parametrize("version", [OLDEST, (1, 29), NEWEST])
def test_nothing_is_said_about_supported_versions(version: tuple[int, int]) -> None:
    assert warning_of((*version, 3)) == ""


@pytest.mark.parametrize("text", ["1.37", "v1.45.0", "2.0.0"])
def test_newer_versions_are_warned_of(text: str) -> None:
    assert "is newer than 1.36, the newest that Lamina was tested with" in warning_of(parse_version(text))


@pytest.mark.parametrize("text", ["1.19.16", "0.99"])
def test_older_versions_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"is too old; Lamina needs 1\.20 or newer"):
        warning_of(parse_version(text))
