"""Templates of mails: what they render, and what is told of a wrong one when it is saved."""

from dataclasses import replace
from time import process_time
from typing import Any

import pytest

from data.mail import in_child
from data.mail.in_child import problems_of_template, template_problems
from data.mail.templates import InvalidTemplate, MailTemplate, render
from models.tenant.document import InvalidSmallApp
from runtime.clock import monotonic
from services.apps.changes import checked_small_app
from tests.tables import table

VALUES: dict[str, Any] = {
    "recipient": {"name": "Ann & Co", "id": "ann"},
    "long": "x" * 1_000,
    "count": 3,
}


def test_the_three_parts_are_rendered_and_only_html_is_escaped() -> None:
    hello = "Hello {{ recipient.name }}"
    content = render(MailTemplate("t", hello, hello, f"<p>{hello}</p>"), VALUES)

    assert content.subject == "Hello Ann & Co"
    assert content.text == "Hello Ann & Co"
    assert content.html == "<p>Hello Ann &amp; Co</p>"
    assert render(MailTemplate("t", "a\nBcc: {{ count }}", ""), VALUES).subject == "a Bcc: 3"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        *table(__file__, "what_templates_cannot_do_is_refused_at_once"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply"),
    ],
)
def test_what_templates_cannot_do_is_refused_at_once(text: str, error: str) -> None:
    began = monotonic()

    with pytest.raises(InvalidTemplate, match=error) as refused:
        render(MailTemplate("t", "subject", text), VALUES)

    assert str(refused.value).startswith("template t text")
    assert monotonic() - began < 30


def test_a_table_of_a_thousand_rows_is_no_bomb() -> None:
    text = "{% for row in rows %}{{ loop.index }}: {{ row.name|upper ~ '!' }}\n{% endfor %}"
    rows = [{"name": "x" * 50}] * 5_000

    assert render(MailTemplate("t", "s", text), {"rows": rows}).text.count("\n") == 5_000


def problems_of(text: str) -> list[str]:
    found = problems_of_template(
        MailTemplate("t", "s", text), {"greeting": "Hello", "team": {"name": "A"}}
    )
    return [str(problem).removeprefix("templates.t.text").lstrip(": ") for problem in found]


def test_what_is_known_is_no_problem() -> None:
    text = (
        "{{ recipient.name }} {{ recipient['id'] }} {{ small_app.title }}"
        "{% for c in recipient.name %}{{ loop.index }}{{ c }}{% else %}{{ date }}{% endfor %}"
        "{{ recipient.nick|default('friend') }} {% if recipient.nick is defined %}{% endif %}"
        "{% set n = date %}{% for c in n %}{% for d in n %}{{ c ~ d }}{% endfor %}{% endfor %}"
        "{{ small_app.settings.greeting }}, {{ small_app.settings.team.name }}"
    )

    assert problems_of(text) == []


@pytest.mark.parametrize(
    ("text", "wrong", "near"),
    [
        ("\n{{ recipent.name }}", "'recipent':", "recipient"),
        ("\n\n{{ recipient.nmae }}", "'nmae'", "name"),
        ("{% if false %}{% if dat %}{% endif %}{% endif %}", "'dat':", "date"),
        ("{{ small_app.settings.greetng }}", "'greetng'", "greeting"),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest(text: str, wrong: str, near: str) -> None:
    line = text.count("\n") + 1

    expected = f'{wrong} is not a known variable; did you mean "{near}"? (line {line})'
    assert problems_of(text) == [expected]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ date|nonsense }}", "No filter named 'nonsense'. (line 1)"),
        (r"{{ '\ud800' }}", "surrogates not allowed"),
        ("{% if date %}" * 150 + "{% endif %}" * 150, "nested too deeply"),
        ("{{ oops", "unexpected end of template"),
        ("{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}", "nested too deeply"),
    ],
)
def test_what_only_shows_when_rendered_or_compiled_is_found(text: str, error: str) -> None:
    assert any(error in one for one in problems_of(text)), problems_of(text)


def test_each_part_and_each_template_reports_its_own_problems() -> None:
    templates = {"a b": {"subject": "{{ x }}", "text": "{{ y }}"}, "c": {"text": "", "html": "{{"}}

    paths = [problem.path for problem in template_problems({"templates": templates})]

    assert paths == ["templates.a b.subject", "templates.a b.text", "templates.c.html"]


@pytest.mark.parametrize("document", [None, {}, {"templates": 3}, {"templates": {"a": 3}}])
def test_what_is_no_document_has_no_templates(document: Any) -> None:
    assert template_problems(document) == []


def test_problems_of_document_and_templates_come_together() -> None:
    template = {"subject": "{{ x }}", "txt": "t"}

    with pytest.raises(InvalidSmallApp) as refused:
        checked_small_app({"name": "A!", "templates": {"t": template}})

    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["name", "templates.t.txt", "templates.t.text", "templates.t.subject"]


def test_a_template_that_takes_too_long_ends_at_its_limit_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_child, "LIMITS", replace(in_child.LIMITS, cpu_s=1))
    texts = {"good": "t", "bad": "{{ 9 ** 9999999 }}"}
    templates = {name: {"subject": "s", "text": text} for name, text in texts.items()}
    began = process_time()

    (problem,) = template_problems({"templates": templates})

    limit = "needs more than 1 s of CPU time; make it smaller"
    assert str(problem) == f"templates.bad.text: {limit}"
    assert process_time() - began < 1


def test_a_template_that_fills_the_memory_ends_at_its_limit_too() -> None:
    (problem,) = problems_of("{{ 'a' * 100000000 }}")

    assert "needs more than 128 MiB of memory; make it smaller" in problem


def test_thousands_of_unknown_variables_are_refused_with_the_first_few() -> None:
    assert len(problems_of("".join(f"{{{{ x{n} }}}}" for n in range(2_500)))) == 20


@pytest.mark.parametrize(
    "text",
    [
        "{% autoescape %}x{% endautoescape %}",
        "{% autoescape true %}{{ unknown }}{% endautoescape %}",
        "{{ 'a long text'|truncate(1, leeway=-5) }}",
    ],
)
def test_an_odd_template_is_a_problem_and_no_traceback(text: str) -> None:
    template = {"subject": "s", "text": text}

    problems = template_problems({"templates": {"t": template}})

    assert {problem.path for problem in problems} == {"templates.t.text"}
    assert not any("Error" in problem.remedy for problem in problems)
