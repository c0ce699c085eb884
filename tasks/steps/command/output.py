"""The output of a program as log lines: as it comes, and never more than is worth reading."""

import codecs
from collections import deque
from collections.abc import Callable, Collection

from runtime.clock import monotonic
from runtime.references import hidden

# As many lines as an operation keeps; further lines within one write are only counted.
MOST_LINES = 200
LONGEST_LINE = 2_000
# What is kept of a line until it is shown: secrets are hidden where they stand whole.
LONGEST_KEPT = 1 << 16
WRITE_EVERY_S = 0.5


class Output:
    """Lines of one stream, written in turn; `last` is the last that is not empty."""

    def __init__(self, write: Callable[[str], None], secrets: Collection[str] = ()) -> None:
        self._write_line = write
        self._secrets = secrets
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._left_out = 0
        self._begun = ""
        self._written_at = monotonic() - WRITE_EVERY_S
        self.last = ""
        self.size = 0

    def take(self, piece: bytes) -> None:
        """Take what the program wrote."""
        self.size += len(piece)
        *lines, rest = self._decoder.decode(piece).split("\n")
        if lines:
            self._keep(self._begun + lines[0])
            self._left_out += max(0, len(lines) - 1 - MOST_LINES)
            for line in lines[1:][-MOST_LINES:]:
                self._keep(line)
            self._begun = ""
        # The rest of a line without end is dropped.
        self._begun = (self._begun + rest)[:LONGEST_KEPT]

    def write_if_old(self) -> None:
        """Write what was taken, if the last write is old enough."""
        if monotonic() >= self._written_at + WRITE_EVERY_S:
            self._write()

    def end(self) -> None:
        """Write what is left, also a last line without its end."""
        if self._begun:
            self._keep(self._begun)
            self._begun = ""
        self._write()

    def _write(self) -> None:
        self._written_at = monotonic()
        if self._left_out:
            self._write_line(f"({self._left_out} lines are left out here)")
        for line in map(self._shown, self._lines):
            self._write_line(line)
            if line.strip():
                self.last = line
        self._lines.clear()
        self._left_out = 0

    def _keep(self, line: str) -> None:
        """Keep a line as it came: of a flood, few lines are ever shown."""
        self._left_out += len(self._lines) == MOST_LINES
        self._lines.append(line.rstrip("\r")[:LONGEST_KEPT])

    def _shown(self, kept: str) -> str:
        line = hidden(kept.replace("\0", "\N{REPLACEMENT CHARACTER}"), self._secrets)
        return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
