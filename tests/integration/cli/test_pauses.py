"""`minutebook pause`, `resume` and `queue list`: what is printed, and the exit codes."""

import pytest

from tests.integration.cli.conftest import Call


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        pytest.param(("--all",), "everything", id="all"),
        pytest.param(("--queue", "quick"), "queue minutebook.quick", id="queue"),
        pytest.param(("--app", "default"), "small app default", id="app"),
    ],
)
def test_a_pause_is_printed_listed_and_ended(
    call: Call, target: tuple[str, ...], shown: str
) -> None:
    call("status")
    paused = call("pause", *target)
    moved = call("pause", *target, "--until", "PT1H", "--reason", "a migration")
    listed = call("pause").out
    resumed = call("resume", *target)
    again = call("resume", *target)

    assert paused.out.startswith(f"{shown} is paused until it is resumed: ")
    assert f"{shown} is paused until 20" in moved.out
    assert shown in listed
    assert "a migration" in listed
    assert resumed.out == f"{shown} is resumed; the next tick sends what waits: 0 runs\n"
    assert again.out == f"{shown} is not paused; nothing was changed\n"
    assert {one.code for one in (paused, moved, resumed, again)} == {0}


def test_a_wrong_pause_is_refused(call: Call) -> None:
    call("status")

    unknown, past = call("pause", "--app", "none"), call("pause", "--all", "--until", "P31D")
    typo, nothing = call("pause", "--queue", "celry"), call("resume")

    assert {one.code for one in (unknown, past, typo, nothing)} == {2}
    assert 'small app "none" is' in unknown.err
    assert "did you mean 'celery'" in typo.err
    assert "--all, --queue NAME or --app NAME" in nothing.err
