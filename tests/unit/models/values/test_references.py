import pytest

from models.values.references import is_reference, parse_reference


@pytest.mark.parametrize("text", ["env:TOKEN", "file:/run/secrets/token", "env:_a1"])
def test_a_reference_is_kept_unchanged(text: str) -> None:
    assert is_reference(text)
    assert parse_reference(text) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("TOKEN", "env:NAME", id="bare_name"),
        pytest.param("env:MY-TOKEN", "name of a variable", id="hyphen"),
        pytest.param("file:token", "absolute path", id="relative"),
        pytest.param(17, "env:NAME", id="number"),
    ],
)
def test_an_error_for_a_wrong_reference_says_what_to_write(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_reference(value)
