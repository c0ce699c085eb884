"""A process that forks others and does not answer fails one test, not those after it."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.acceptance import warm as module
from tests.acceptance.warm import OURS, Forked, warm


def version(folder: Path) -> Forked:
    with (folder / "out").open("wb") as out:
        command = [sys.executable, *OURS, "--version"]
        return warm().start(command, dict(os.environ), folder, (out, out))


def test_after_one_that_does_not_answer_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version(tmp_path).wait(60) == 0
    process = warm()._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(module.Warm._answered, "__defaults__", (0.1,))

    with pytest.raises(RuntimeError, match="does not answer; it is stopped"):
        version(tmp_path)
    monkeypatch.undo()

    assert version(tmp_path).wait(60) == 0
    assert (tmp_path / "out").read_text().startswith("minutebook")
