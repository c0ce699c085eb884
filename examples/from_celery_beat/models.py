"""The shop's own `models`: its journal."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A line of the shop's journal."""

    task: str
    shop: str
    said: str
    pid: int


def write(task: str, shop: str, said: str) -> None:
    """Append a line to the journal in one write."""
    path = Path(os.environ.get("SHOP_JOURNAL", "journal.jsonl"))
    line = dumps(asdict(Entry(task, shop, said, os.getpid()))) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
