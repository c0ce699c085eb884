"""Ctrl-C while a command works: it ends as shells expect, without a traceback."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType

import pytest

from cli.main import INTERRUPTED
from models.values import format_instant
from services.actions.search import list_actions
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write


@contextmanager
def pressing(function: FunctionType) -> Iterator[None]:
    """Press Ctrl-C at the first call of a function."""
    waits = [True]

    def press(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code is function.__code__ and waits:
            waits.clear()
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(press)
    try:
        yield
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    assert not waits


# pydantic makes an error of its own of whatever the first raises; nothing catches the second's.
@pytest.mark.parametrize("function", [format_instant, list_actions])
def test_ctrl_c_ends_a_command_without_an_error(
    function: FunctionType, call: Call, write: Write
) -> None:
    call("action", "add", write(make_document()))

    with pressing(function):
        answered = call("action", "list")

    assert (answered.code, answered.err) == (INTERRUPTED, "")
