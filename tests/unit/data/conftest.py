"""Fixtures of imports: texts into snapshots of one domain."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from data import snapshots
from data.importing import Data, Rules
from data.settings import Settings
from data.snapshots import Place, Row, Written
from tasks.bounded.limits import Watch


@dataclass
class Importing:
    """Imports texts into snapshots of one domain, in a home folder of its own."""

    settings: Settings
    last: str | None = None
    written: Written | None = field(default=None)

    def __call__(self, content: str | bytes, format_name: str = "csv", **rules: Any) -> list[Row]:
        """Import `content`; return the rows of the snapshot."""
        file = self.settings.home / "given"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        data = Data(file, format_name, "source", Rules(**rules))
        place = Place("demo", "a", uuid4())
        self.written = snapshots.write(self.settings, place, data, Watch(), self.last)
        self.last = self.written.path
        return list(snapshots.read(self.settings, self.written.path))

    @property
    def left_out(self) -> dict[str, Any]:
        assert self.written is not None
        return self.written.imported.bad_rows.as_json()

    @property
    def figures(self) -> dict[str, Any]:
        assert self.written is not None
        return self.written.imported.figures


@pytest.fixture
def imported(tmp_path: Path) -> Importing:
    return Importing(Settings(home=tmp_path))


@pytest.fixture
def importing(tmp_path: Path) -> Callable[..., Importing]:
    return lambda **fetch: Importing(Settings.model_validate({"home": tmp_path, "fetch": fetch}))
