"""Commands set this process's umask; each test gives it back."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _same_umask_after() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
