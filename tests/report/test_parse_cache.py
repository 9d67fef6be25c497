"""Objects are read once, and again when others take their place."""

from lamina.ports.kube import Object
from lamina.report.cluster_reader import ParseCache


def named(name: str) -> Object:
    return {"metadata": {"name": name}}


def test_only_what_is_new_is_read() -> None:
    read: list[str] = []

    def note(obj: Object) -> str:
        read.append(obj["metadata"]["name"])
        return read[-1]

    objects = ParseCache(note)
    a, b, c = map(named, "abc")
    assert objects.all([a, b]) == ["a", "b"] and objects.all([b, c, a]) == ["b", "c", "a"]
    assert read == ["a", "b", "c"]
    assert objects.all([named("a"), b]) == ["a", "b"] and read == ["a", "b", "c", "a"]
    assert objects.all([c]) == ["c"] and read[4:] == ["c"], "what was not among the last ones is forgotten"


def test_what_is_empty_is_read_once_too() -> None:
    read: list[Object] = []
    objects, a = ParseCache(read.append), named("a")
    assert [objects.all([a]), objects.all([a])] == [[None], [None]] and read == [a]
