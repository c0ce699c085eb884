"""`minutebook queue …` and `app pause`: what is printed, and the exit codes."""

import pytest

from tests.integration.cli.conftest import Call


@pytest.mark.parametrize(
    ("group", "name", "shown"),
    [
        pytest.param("queue", "quick", "queue minutebook.quick", id="queue"),
        pytest.param("queue", "@crm", "application @crm", id="application"),
        pytest.param("app", "default", "small app default", id="small_app"),
    ],
)
def test_a_pause_is_printed_listed_and_ended(call: Call, group: str, name: str, shown: str) -> None:
    call("status")
    paused = call(group, "pause", name)
    moved = call(group, "pause", name, "--until", "PT1H")
    listed = call("queue", "list", "--json").json
    resumed = call(group, "resume", name)
    again = call(group, "resume", name)

    assert paused.out.startswith(f"{shown} is paused until it is resumed: ")
    assert f"{shown} is paused until 20" in moved.out
    assert "it was paused before; waiting: 0 operations" in moved.out
    assert [one["is_paused"] for one in listed if one["is_paused"]] == [True]
    assert resumed.out == f"{shown} is resumed; the next tick sends 0 operations\n"
    assert again.out == f"{shown} is not paused; nothing was changed\n"
    assert {one.code for one in (paused, moved, resumed, again)} == {0}


def test_a_wrong_pause_is_refused(call: Call) -> None:
    call("status")

    unknown, past = call("app", "pause", "none"), call("queue", "pause", "q", "--until", "P31D")

    assert (unknown.code, past.code) == (2, 2)
    assert 'small app "none" is' in unknown.err
