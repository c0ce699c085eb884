from typing import Any

import pytest

from data.mail.templates import InvalidTemplate, MailTemplate, render
from runtime.clock import monotonic

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


def test_a_subject_is_one_line() -> None:
    content = render(MailTemplate("t", "a\nBcc: {{ count }}", ""), VALUES)

    assert content.subject == "a Bcc: 3"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{{ range(100000000) }}", "Range too big"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ recipient|attr('__class__') }}", "'__class__' is not a known variable"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"),
        ("{{ '{0.__class__}'.format(count) }}", "unsafe"),
        ("{% import 'x' as y %}", "no loader"),
        ("{% for c in long ~ long %}{{ long }}{% endfor %}", "makes over 1000000 characters"),
        ("{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}", "nested too deeply"),
        ("{{ 1 / 0 }}", "line 1: division by zero"),
        (r"{{ '\ud800' }}", "surrogates not allowed"),
        ("{{ long|truncate(1, leeway=-5) }}", "expected length >= 3"),
        ("line\n{{ oops", "line 2: unexpected end"),
        ("{{ recipent.name }}", "'recipent' is undefined"),
        ("{{ recipient.nmae }}", "'nmae' is not a known variable; did you mean"),
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
