"""What a text such as `backup.sh(DAY STAGE)` allows: a program, and the variables it may get."""

import pytest

from runtime.sections.commands import is_command_among, why_no_command, with_variables


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("backup.sh", ["backup.sh"]),
        ("backup.sh(DAY)", ["backup.sh(DAY STAGE)"]),
        ("backup.sh(DAY STAGE)", ["backup.sh(DAY)", "backup.sh(STAGE)"]),
        ("/srv/a(DAY)", ["/srv/*(DAY)"]),
        ("/srv/a(ANY)", ["/srv/a", "shell"]),
    ],
)
def test_a_text_allows_a_program_with_its_variables(text: str, allowed: list[str]) -> None:
    assert is_command_among(text, allowed)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("backup.sh", []),
        ("backup.sh", ["restore.sh(DAY)"]),
        ("backup.sh(DAY)", ["backup.sh"]),
        ("backup.sh(DAY)", ["backup.sh()"]),
        ("backup.sh(DAY)", ["backup.sh(day)", "backup.sh(DAYS)", "backup.sh(AY)"]),
        ("backup.sh(DAY STAGE)", ["backup.sh(DAY)"]),
        ("backup.sh(GNUMAKEFLAGS)", ["make(GNUMAKEFLAGS)", "backup.sh(DAY STAGE)"]),
        ("/srv/a", ["shell"]),
    ],
)
def test_no_other_text_allows_a_program_or_a_variable(text: str, allowed: list[str]) -> None:
    assert not is_command_among(text, allowed)


@pytest.mark.parametrize(
    "text",
    ["backup.sh(DAY", "backup.sh(DAY,STAGE)", "STAGE)", "backup.sh(A)(B)", "(DAY)", "x(A_*)", " "],
)
def test_a_broken_text_is_refused(text: str) -> None:
    assert why_no_command(text) is not None


@pytest.mark.parametrize("text", ["shell", "*", "/srv/jobs/*", "make(A B_C)", "/opt/a b/x"])
def test_a_text_that_can_be_read_is_taken(text: str) -> None:
    assert why_no_command(text) is None


def test_without_variables_a_program_is_named_alone() -> None:
    assert (with_variables("a", []), with_variables("a", ["B", "C"])) == ("a", "a(B C)")
