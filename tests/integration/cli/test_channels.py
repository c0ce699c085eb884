"""`minutebook notify`: the channels of an installation, here and on a server elsewhere."""

import pytest

from tests.integration.cli.conftest import Call
from tests.receiver import receiver


def test_a_channel_is_listed_and_takes_a_test(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as chat:
        monkeypatch.setenv("SCHED_HOOK_ALLOW_PRIVATE", "true")
        monkeypatch.setenv("SCHED_NOTIFY_OPS", chat.url.replace("http://", "json://"))

        listed = call("notify", "list")
        tested = call("notify", "test", "ops")
        chat.answers = [500]
        refused = call("notify", "test", "ops")

    assert listed.out.split() == ["NAME", "ops"]
    assert tested.out == "channel ops took the test message\n"
    assert refused.code == 2
    assert refused.err.startswith("error: channel ops: ")
