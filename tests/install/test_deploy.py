"""deploy/ holds what `lamina install` renders, so that it can be read and installed without Python."""

from tests.install.deploy_files import DEPLOY, GENERATED, files


def test_the_files_are_up_to_date() -> None:
    present = {
        str(path.relative_to(DEPLOY)): path.read_text()
        for folder in GENERATED
        for path in (DEPLOY / folder).rglob("*")
        if path.is_file()
    }
    expected = files()
    assert present.keys() == expected.keys(), "run `make deploy`"
    assert [path for path, text in expected.items() if present[path] != text] == [], "run `make deploy`"
