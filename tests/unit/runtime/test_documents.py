"""runtime/documents.py: a broken YAML text is refused with a place and a remedy that helps."""

from time import process_time

import pytest

from runtime.documents import InvalidYaml, read_yaml, read_yaml_documents


@pytest.mark.parametrize(
    ("broken", "message", "mended"),
    [
        pytest.param(
            "a:\n\tb: 1",
            "line 2, column 1: indent with spaces, not with tabs",
            "a:\n  b: 1",
            id="a_tab",
        ),
        pytest.param(
            "name: @shop",
            "line 1, column 7: write a text that begins with this character in quotes",
            'name: "@shop"',
            id="a_reserved_character",
        ),
        pytest.param(
            "name: a: b",
            "line 1, column 8: write one `key: value` a line, and a text that holds ': ' in quotes",
            'name: "a: b"',
            id="a_colon_in_a_text",
        ),
        pytest.param("a: 'x", "line 1, column 6: close the quotes", "a: 'x'", id="an_open_quote"),
        pytest.param(
            "a: [1, 2",
            "line 1, column 9: separate the entries by commas, and close every [ and {",
            "a: [1, 2]",
            id="an_open_list",
        ),
        pytest.param(
            "- a\nb: 1",
            "line 2, column 1: indent the entries of one list or object alike",
            "- a\n- b: 1",
            id="a_list_and_a_key",
        ),
        pytest.param(
            "a: 1\nb\n", "line 3, column 1: write `key: value`", "a: 1\nb: 2", id="no_colon"
        ),
        pytest.param("? {}\n: 1", "line 1, column 3: write a text as the key", "x: 1", id="a_key"),
    ],
)
def test_a_broken_text_is_read_once_the_advice_is_followed(
    broken: str, message: str, mended: str
) -> None:
    with pytest.raises(InvalidYaml) as refused:
        read_yaml(broken)

    assert str(refused.value) == message
    assert read_yaml(mended)


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
    [
        "\n".join(f"key{n}: {n}" for n in range(100_000)),
        f"[{'1,' * 300_000}1]",
        "- a\n" * 300_000,
        "--- a\n" * 100_000,
    ],
    ids=["keys", "flow", "block", "documents"],
)
def test_values_without_end_are_refused_in_seconds(text: str) -> None:
    began = process_time()

    with pytest.raises(InvalidYaml, match="holds more than 50,000 values and keys"):
        (read_yaml_documents if text.startswith("---") else read_yaml)(text)

    assert process_time() - began < 4
