"""What deploy/ holds besides the templates of the chart is up to date, so that it can be installed without Python."""

from tests.install.deploy_files import BY_HAND, DEPLOY, files


def test_the_files_are_up_to_date() -> None:
    paths = {str(path.relative_to(DEPLOY)): path for path in DEPLOY.rglob("*") if path.is_file()}
    present = {below: path.read_text() for below, path in paths.items() if not below.startswith(BY_HAND)}
    expected = files()
    assert present.keys() == expected.keys(), "run `make deploy`"
    assert [path for path, text in expected.items() if present[path] != text] == [], "run `make deploy`"
