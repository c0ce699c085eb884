"""The output of a program as log lines: as it comes, and never more than is worth reading."""

import codecs
import logging
from collections import deque
from collections.abc import Collection

from runtime.clock import monotonic
from runtime.references import hidden

# As many lines as an operation keeps; further lines within one write are only counted.
MOST_LINES = 200
LONGEST_LINE = 2_000
WRITE_EVERY_S = 0.5
# The shortest line of a secret that is hidden by itself; a shorter one would hide too much else.
SHORTEST_PART = 8
# How many characters one may be in a URL: up to four bytes, each as %XX.
AS_IN_A_URL = 12

Logger = logging.Logger | logging.LoggerAdapter[logging.Logger]


class Output:
    """Lines of one stream, logged in turn; `last` is the last that is not empty."""

    def __init__(self, logger: Logger, level: int, secrets: Collection[str] = ()) -> None:
        self._logger = logger
        self._level = level
        # If a secret has several lines, each line is hidden.
        parts = [part for one in secrets for part in one.splitlines() if len(part) >= SHORTEST_PART]
        self._secrets = {*secrets, *parts}
        # The end of a line that is cut may be the beginning of a secret, and is never shown.
        self._unsure = AS_IN_A_URL * max(map(len, self._secrets), default=0)
        self._most = LONGEST_LINE + 1 + self._unsure
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
        self._begun = (self._begun + rest)[: self._most]

    def write_if_old(self) -> None:
        """Log what was taken, if the last write is old enough."""
        if monotonic() >= self._written_at + WRITE_EVERY_S:
            self._write()

    def end(self) -> None:
        """Log what is left, also a last line without its end."""
        if self._begun:
            self._keep(self._begun)
            self._begun = ""
        self._write()

    def _write(self) -> None:
        self._written_at = monotonic()
        if self._left_out:
            self._logger.log(self._level, "(%d lines are left out here)", self._left_out)
        for line in map(self._shown, self._lines):
            self._logger.log(self._level, "%s", line)
            if line.strip():
                self.last = line
        self._lines.clear()
        self._left_out = 0

    def _keep(self, line: str) -> None:
        """Keep a line as it came: of a flood, few lines are ever shown."""
        self._left_out += len(self._lines) == MOST_LINES
        self._lines.append(line.rstrip("\r")[: self._most])

    def _shown(self, kept: str) -> str:
        line = hidden(kept.replace("\0", "\N{REPLACEMENT CHARACTER}"), self._secrets)
        if len(kept) >= self._most:
            line = line[: len(line) - self._unsure]
        return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
