from time import process_time

import pytest

from runtime import documents
from runtime.documents import InvalidYaml, read_yaml
from tests.tables import table


@pytest.mark.parametrize(
    ("broken", "message", "mended"),
    table(__file__, "a_broken_text_is_read_once_the_advice_is_followed"),
)
def test_a_broken_text_is_read_once_the_advice_is_followed(
    broken: str, message: str, mended: str
) -> None:
    with pytest.raises(InvalidYaml) as refused:
        read_yaml(broken)

    assert str(refused.value) == message
    assert read_yaml(mended)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((text, text) for text in ("on", "off", "yes", "no", "y", "N", "On", "YES", "tRUE")),
        *((text, True) for text in ("true", "True", "TRUE")),
        *((text, False) for text in ("false", "False", "FALSE")),
        *((text, None) for text in ("null", "Null", "NULL", "~", "")),
        *((text, text) for text in ("12:30", "12:30:45", "1_000", "0b11", "1_0.5", "0o19")),
        *((text, text) for text in ("2026-11-26", "2026-11-26T07:00:00Z", "<<", "=", "+.nan")),
        *(("12", 12), ("-7", -7), ("+7", 7), ("010", 10), ("0o17", 15), ("0x1F", 31)),
        *((".5", 0.5), ("1.", 1.0), ("-1.5e3", -1500.0), ("1e3", 1000.0)),
        *((".inf", float("inf")), ("-.INF", float("-inf"))),
    ],
)
def test_a_plain_value_is_what_yaml_1_2_says(written: str, value: object) -> None:
    read = read_yaml(f"a: {written}")["a"]

    assert (read, type(read)) == (value, type(value))


def test_on_is_a_key() -> None:
    assert read_yaml("when:\n  on: order.paid\n") == {"when": {"on": "order.paid"}}
    assert read_yaml("{on: {action: load}, off: no}") == {"on": {"action": "load"}, "off": "no"}


@pytest.mark.parametrize(
    "text", ["a: \0", "a: !!int 3x", "[" * 5_000, "a: &x [*x]", "a: 0x" + "f" * 5_000]
)
def test_any_other_fault_is_one_line(text: str) -> None:
    with pytest.raises(InvalidYaml) as refused:
        read_yaml(text)

    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["[", "{", "[a, ", '{"a": ', "- [", "- ", "? "])
def test_nesting_without_end_is_refused_in_linear_time(text: str) -> None:
    began = process_time()

    with pytest.raises(InvalidYaml, match=r"nested too deeply|as the key"):
        read_yaml(text * 20_000)

    assert process_time() - began < 0.5


@pytest.mark.parametrize(
    "text",
    ["\n".join(f"key{n}: {n}" for n in range(30_000)), f"[{'1,' * 60_000}1]", "- a\n" * 60_000],
    ids=["keys", "flow", "block"],
)
def test_values_without_end_are_refused_in_seconds(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Once there are too many: what follows is not read."""
    monkeypatch.setattr(documents, "MOST_VALUES", 5_000)
    began = process_time()

    with pytest.raises(InvalidYaml, match="holds more than 5,000 values and keys"):
        read_yaml(text)

    assert process_time() - began < 4
