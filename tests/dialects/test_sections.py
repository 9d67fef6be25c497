"""A dialect has its own section of the configuration, and its names in the lists of what is written for tools."""

import logging

import msgspec
import pytest

from lamina.agent.compat.reconciler import PLENTY, desired_amounts, desired_metadata
from lamina.agent.metrics.families import families
from lamina.configuration import DEFAULT, Config, load
from lamina.configuration.form import form
from lamina.configuration.text import to_yaml
from lamina.dialects import parse, registry
from lamina.errors import BadInput
from lamina.ports.set_aside import SetAside
from tests.dialects.nodes import A100, described
from tests.dialects.pods import container, pod
from tests.dialects.toy.section import ToySection

log = logging.getLogger(__name__)

HEADER = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
OWN = "dialects: {toy: {resources: {count: toys.io/gpu}, memoryUnitMiB: 512, halves: false}}\n"
toys = pytest.mark.usefixtures("toy_config")


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        load(HEADER + text, "c")
    return str(refused.value).removeprefix("c: ")


@toys
def test_what_is_written_in_a_section_takes_effect() -> None:
    config = load(HEADER + OWN, "c")
    section = config.section(ToySection)
    assert (section.resources.count, section.memory_unit_mib, section.halves) == ("toys.io/gpu", 512, False)
    assert section.resources.memory == "toy.example/gib", "a section only names what differs"
    request = parse(pod(container(**{"toys.io/gpu": 2, "toy.example/gib": 3})), config)
    assert request is not None and request.dialect == "toy"
    assert (request.containers[0].count, request.containers[0].memory_mib) == (2, 3 * 512)
    whole = parse(pod(container(**{"toys.io/gpu": 2})), config)
    assert whole is not None and whole.containers[0].memory_percent == 100


@toys
@pytest.mark.parametrize(
    "text", ["", HEADER, HEADER + "dialects: {}", HEADER + "dialects: {toy: {}}", "nodeconfig: []"]
)
def test_a_section_that_says_nothing_has_its_defaults(text: str) -> None:
    assert load(text, "c").section(ToySection) == ToySection()
    assert load(text, "c") == load("", "c")


def test_a_configuration_without_the_section_has_its_defaults() -> None:
    assert DEFAULT.section(ToySection) == ToySection()


@toys
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dialects: {toi: {}}", "unknown key toi in dialects; did you mean toy?"),
        ("dialects: {toy: {halfs: true}}", "unknown key halfs in dialects.toy; did you mean halves?"),
        ("dialects: {toy: {resources: {cont: a.b/c}}}", "unknown key cont in dialects.toy.resources; did you mean"),
        ("dialects: {toy: {halves: 1}}", "dialects.toy.halves must be true or false, got 1"),
        ("dialects: {toy: {memoryUnitMiB: 0}}", "dialects.toy.memoryUnitMiB must be an integer from 1 to 1048576, got"),
        ("dialects: {toy: {resources: {count: gpu}}}", "dialects.toy.resources.count must be a resource name such as"),
        ("dialects: {toy: []}", "dialects.toy must be a mapping, got []"),
        (
            "dialects: {toy: {resources: {memory: toy.example/gpu}}}",
            "dialects.toy.resources.count and dialects.toy.resources.memory must be different names, got toy.example/",
        ),
        (
            "dialects: {toy: {resources: {count: nvidia.com/gpu}}}",
            "dialects.hami.resources.count and dialects.toy.resources.count must be different names, got nvidia.com/",
        ),
        (
            "compatibility: {metrics: [toy]}",
            "compatibility.metrics must be a list of hami, volcano, cce, dcgm, opentelemetry and toys",
        ),
        ("compatibility: {annotations: [cce]}", "compatibility.annotations must be a list of hami, volcano and toy, "),
        (
            "compatibility: {resources: toy}",
            "compatibility.resources must be a list of hami, volcano, cce and toy, got",
        ),
    ],
)
def test_mistakes_in_a_section_are_refused_as_in_any_other(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


def test_an_unregistered_dialect_has_no_section_and_is_in_no_list() -> None:
    assert refusal(OWN).startswith("unknown key toy in dialects; known are cce, hami, kai, otherResources, volcano")
    for name in ("annotations", "resources", "metrics"):
        assert refusal(f"compatibility: {{{name}: [toy]}}").startswith(f"compatibility.{name} must be a list of hami")


@toys
def test_a_configuration_is_written_with_the_section_and_read_again() -> None:
    written = load(HEADER + OWN + "compatibility: {metrics: [toys]}\n", "c")
    assert to_yaml(written) == HEADER + (
        "dialects:\n  toy:\n    resources: {count: toys.io/gpu}\n    memoryUnitMiB: 512\n    halves: false\n"
        "compatibility:\n  metrics: [toys]\n"
    )
    assert load(to_yaml(written), "c") == written


@toys
def test_the_schema_describes_the_section_and_the_lists() -> None:
    schema = msgspec.json.schema(form().configuration)["$defs"]
    assert (
        schema["Dialects"]["properties"]["toy"]["description"]
        == "The toy dialect: toy.example/gpu and toy.example/gib."
    )
    unit = schema["ToySection"]["properties"]["memoryUnitMiB"]
    assert (unit["x-unit"], unit["default"], unit["x-reason"]) == ("MiB", 1024, "Toys count GiB.")
    metrics = schema["Compatibility"]["properties"]["metrics"]
    assert metrics["items"] == {"enum": ["cce", "dcgm", "hami", "opentelemetry", "toys", "volcano"]}
    assert metrics["default"] == ("hami", "volcano", "cce", "dcgm", "toys")
    assert list(schema["Configuration"]["properties"])[:4] == ["apiVersion", "kind", "enabled", "nodes"]


def test_the_form_is_made_once_for_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    with_all = form()
    assert form() is with_all
    monkeypatch.setattr(registry, "DIALECTS", registry.DIALECTS[:1])
    assert form() is not with_all


def names_of_metrics(config: Config) -> set[str]:
    return {family.name for family in families(config, [], [], [], SetAside(log))}


NODE = described(A100)
LISTS = {
    "annotations": lambda config: "toy.example/devices" in desired_metadata(NODE, config).annotations,
    "resources": lambda config: desired_amounts(NODE.inventory, config)["toy.example/gib"] != PLENTY,
    "metrics": lambda config: "toy_used_bytes" in names_of_metrics(config),
    "labels": lambda config: "toy.example/count" in desired_metadata(NODE, config).labels,
}


@toys
@pytest.mark.parametrize("name", LISTS)
def test_what_is_written_for_tools_is_there_by_default_and_not_where_its_list_leaves_it_out(name: str) -> None:
    without = load(f"{HEADER}compatibility: {{{name}: {'false' if name == 'labels' else '[hami]'}}}", "c")
    for other, is_written in LISTS.items():
        assert is_written(load("", "c"))
        assert is_written(without) == (other != name)


@toys
def test_its_schedulers_are_served_unless_the_configuration_lists_others() -> None:
    before = (
        *("default-scheduler", "lamina-scheduler", "hami-scheduler", "4pd-scheduler", "volcano"),
        *("kai-scheduler", "runai-scheduler"),
    )
    assert DEFAULT.schedulers.served == before
    assert load(HEADER, "c").schedulers.served == load("", "c").schedulers.served == (*before, "toy-scheduler")
    assert load(HEADER + "schedulers: {served: [mine]}", "c").schedulers.served == ("mine",)
    assert load("schedulers: {served: [mine]}", "c").schedulers.served == ("mine",)


@toys
def test_a_dialect_that_is_not_listed_by_default_can_be_listed() -> None:
    names = ("nvidia.com/gpumem", "nvidia.com/gpucores")
    without, listed = load("", "c"), load(HEADER + "compatibility: {resources: [hami]}", "c")
    assert {desired_amounts(NODE.inventory, without)[name] for name in names} == {PLENTY}
    assert [desired_amounts(NODE.inventory, listed)[name] for name in names] == [9, 100]
