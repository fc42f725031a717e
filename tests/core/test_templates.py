"""Templates of prompts: what they write, what is wrong with them, and what they cannot do."""

from __future__ import annotations

import json
import sys
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import SpecError
from evaluand.core.text.templates import Template, TemplateError

ROW: dict[str, Any] = {
    "question": "Rain?",
    "choices": ["yes", "no"],
    "row": {"items": [1, 2], "title": "a"},
    "note": None,
}


def rendered(text: str, **values: Any) -> str:
    return Template(text).render(ROW | values)


def refusal(text: str, **values: Any) -> str:
    with pytest.raises(TemplateError) as error:
        rendered(text, **values)
    return str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


# What is written


@given(st.text(max_size=30).filter(lambda text: not any(mark in text for mark in ("{{", "{%", "{#", "\r"))))
def test_a_text_without_places_is_written_as_it_is(text: str) -> None:
    assert Template(text).render({}) == text.removesuffix("\n")


@given(st.text(max_size=60))
def test_a_value_is_written_as_it_is_and_never_read_as_a_template(text: str) -> None:
    assert Template("<{{ value }}>").render({"value": text}) == f"<{text}>"


@given(st.lists(JSON, max_size=4) | st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_lists_and_objects_are_written_as_json(value: Any) -> None:
    assert json.loads(Template("{{ value }}").render({"value": value})) == value
    assert json.loads(Template("{{ value | tojson(indent=2) }}").render({"value": value})) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"answer": {"text": "{{ question }}"}}', '{"answer": {"text": "Rain?"}}'),
        ("{% for choice in choices %}\n{{ loop.index }}. {{ choice }}\n{% endfor %}\nReply.", "1. yes\n2. no\nReply."),
        ("{{ choices | map('upper') | join(', ') }} or {{ ' or '.join(choices) }}", "YES, NO or yes or no"),
        ("{{ row.items }} {{ row['title'] | title }} {{ row.items[::-1] }}", "[1, 2] A [2, 1]"),
        ("{{ true }} {{ 1.5 }} {{ 7 // 2 }} {{ day }} {{ price }}", "true 1.5 3 2026-11-05 1.50"),
        ("{{ note or 'none' }}{{ missing | default('!') }}{{ '' if missing is undefined }}", "none!"),
        (
            "{% set ns = namespace(n=0) %}{% for x in row['items'] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
            "3",
        ),
        ("{{ '%.2f' | format(1.234) }} {{ '%s-%s' % ('a', 'b') }} {{ 'a' ~ 1 ~ [2] }}", "1.23 a-b a1[2]"),
        ("{{ 'aXbX'.replace('X', '-') }}{{ 'aX' | replace('X', '') }}", "a-b-a"),
        ("{{ '<b>' | e }} {{ ['é', none] | tojson }}", '&lt;b&gt; ["é", null]'),
        ("{% if 'yes' in choices and question.startswith('R') %}in{% endif %}", "in"),
        ("{{ row['items'] | sum }} {{ [{'a': 2}, {'a': 3}] | sum(attribute='a') }} {{ 2.567 | round(1) }}", "3 5 2.6"),
        ("{% for a, b in {'k': 1}.items() if b %}{{ a }}{{ b }}{% else %}none{% endfor %}", "k1"),
        ("{% macro f(n) %}{{ n }}!{% endmacro %}{% set x %}{{ f('a') }}{% endset %}{{ x ~ x }}", "a!a!"),
        ("{% for x in [[[]]] recursive %}({{ loop(x) }}){% endfor %}", "(())"),
    ],
)
def test_templates_write(text: str, expected: str) -> None:
    assert rendered(text, day=date(2026, 11, 5), price=Decimal("1.50")) == expected


def test_the_same_row_makes_the_same_text() -> None:
    template = Template("{{ row }} {{ choices | unique | list }}")
    assert template.render(ROW) == template.render(json.loads(json.dumps(ROW)))
    assert "no filter is called 'random'" in refusal("{{ choices | random }}")


# What is wrong with a template


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Answer {{ question", "not a Jinja template: unexpected end of template"),
        ("What is {{ q ?", "not a Jinja template: unexpected char '?' at 13; the {{ in column 9 has no }}"),
        ("A\n{{ q ? And {{ r }}", "line 2 of the template: not a Jinja template: unexpected char '?' at 7; the {{ in"),
        ("{{ q }} {% if q }", "not a Jinja template: unexpected '}'; the {% in column 9 has no %}"),
        ("a\nb\n{% if x %}", "line 3 of the template: not a Jinja template: Unexpected end of template"),
        ("{{ question | uper }}", "no filter is called 'uper' (did you mean 'upper'?)"),
        ("{{ 1 is evne }}", "no test is called 'evne' (did you mean 'even'?)"),
        ("{% include '/etc/passwd' %}", "{% include %} is not available"),
        ("{% import 'x' as x %}", "{% import %} is not available"),
        ("{% extends 'x' %}", "{% extends %} is not available"),
        ("{% block x %}{% endblock %}", "{% block %} is not available"),
    ],
)
def test_what_is_no_template_is_refused_when_it_is_made(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as error:
        Template(text)
    assert str(error.value).startswith(message)


def test_all_faults_are_reported_with_file_and_line() -> None:
    with pytest.raises(TemplateError) as error:
        Template("{% include 'a' %}\n{{ 1 | nothing_of_this_name }}", "prompts/long.txt")
    assert str(error.value).splitlines() == [
        "prompts/long.txt:1: {% include %} is not available",
        "prompts/long.txt:2: no filter is called 'nothing_of_this_name'",
    ]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("{{ question }} {{ input }}", []),
        ("{{ qestion }}", ["there is no value 'qestion' (did you mean 'question'?); known: question, input"]),
        ("{{ a }}\n{{ a }}", ["line 1 of the template: there is no value 'a'; known: question, input"]),
        ("{% for x in input %}{{ x }}{{ loop.index }}{% endfor %}", []),
        ("{% if note is defined %}{{ note }}{% endif %}{{ other | default('') }}", []),
        ("Answer {question}.", ["{question} would be sent as it is; write {{ question }}"]),
        ('{"question": "{{ question }}", "of": {input }, "set": {"a"}, {other}}', ["{input} would be sent as it is;"]),
        ("{{ '{question}' }} {{question}}", []),
    ],
)
def test_values_that_a_dataset_does_not_have_are_found_without_rendering(text: str, faults: list[str]) -> None:
    found = [*Template(text).faults(["question", "input"])]
    assert len(found) == len(faults)
    assert all(one.startswith(other) for one, other in zip(found, faults, strict=True))


def test_a_value_that_is_missing_or_null_is_no_hole_in_the_text() -> None:
    assert refusal("{{ nothing }}") == "'nothing' is undefined"
    assert refusal("{{ row.nothing }}") == "'dict object' has no attribute 'nothing'"
    null = 'a value is null; write {{ VALUE or "" }} if it may be'
    assert {refusal("{{ note }}"), refusal("{{ 'a' ~ note }}"), refusal("{{ [note] | join }}")} == {null}
    assert refusal("{% for x in note %}{% endfor %}") == null
    assert refusal("a\n\n{{ note }}") == f"line 3 of the template: {null}"
    assert refusal("{% for x in question %}{% endfor %}") == "a loop needs a list, not a text"
    assert refusal("{{ 1 / 0 }}") == "division by zero"


# What a template cannot do


@pytest.mark.parametrize(
    "text",
    [
        "{{ ().__class__.__bases__ }}",
        "{{ ''['__class__'] }}",
        "{{ question.__init__ }}",
        "{{ nothing.__init__.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ 'a'.join.func.__globals__ }}",
        "{{ range.__globals__ }}",
        "{{ namespace.__init__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ [1].append(2) }}",
        "{{ row.update(a=1) }}",
        "{{ row.clear() }}",
        "{{ (255).to_bytes(4) }}",
        "{{ 'a'.encode() }}",
        "{{ [1] | map(attribute='__class__') | list }}",
        "{{ [''] | map(attribute='__class__.__mro__') | list }}",
        "{{ cycler }}",
        "{{ lipsum() }}",
        "{{ self }}",
        "{{ range }}",
    ],
)
def test_a_template_does_not_reach_python(text: str) -> None:
    refusal(text)
    assert ROW["row"] == {"items": [1, 2], "title": "a"}


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(99999) %}{{ long }}{% endfor %}",
        "{% macro f() %}{{ long }}{{ long }}{% endmacro %}{% for i in range(99999) %}{{ f() }}{% endfor %}",
    ],
)
def test_a_text_beyond_eight_million_characters_is_refused(text: str) -> None:
    assert refusal(text, long="a" * 1_000_000) == "makes a text of more than 8,000,000 characters"
    assert "Range too big" in refusal("{{ range(10 ** 9) | list }}")
    with pytest.raises(TemplateError, match="is longer than 8,000,000 characters"):
        Template("a" * 8_000_001)


def test_a_template_without_end_is_an_error() -> None:
    assert "recursion" in refusal("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")


def test_a_template_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(TemplateError, match="is nested too deeply"):
        Template("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}")


def test_without_jinja_a_template_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "jinja2" or "text.template_s" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(SpecError, match=r"templates need Jinja2: pip install 'evaluand\[llm\]'"):
        Template("{{ question }}")
