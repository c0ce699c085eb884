"""Count what a thread runs: files, functions, statements and transactions, by station."""

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sqlalchemy as sa

from benchmarks.harness import ROOT

ROOMS = {file.parent.name for file in ROOT.glob("*/__init__.py")} - {"tests"}
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Station:
    """What ran between two points of a way."""

    codes: dict[int, CodeType] = field(default_factory=dict)
    statements: int = 0
    transactions: int = 0

    def functions(self) -> set[tuple[str, str, int]]:
        """Return the project's functions: file, name and first line."""
        return {
            (str(file.relative_to(ROOT)), code.co_qualname, code.co_firstlineno)
            for code in self.codes.values()
            if (file := Path(code.co_filename)).is_relative_to(ROOT)
            and file.relative_to(ROOT).parts[0] in ROOMS
        }


class Trace:
    """Counts what this thread runs within `counting`; a call of `border` begins another station."""

    def __init__(self, border: CodeType, beyond: str) -> None:
        self.stations: dict[str, Station] = {}
        self._border, self._beyond = border, beyond
        self._at = Station()

    @contextmanager
    def counting(self, name: str) -> Iterator[None]:
        """Count the block as the station `name`."""
        self._at = self.stations[name] = Station()
        listened: Any = (("begin", self._begins), ("before_cursor_execute", self._executes))
        for event in listened:
            sa.event.listen(sa.Engine, *event)
        sys.setprofile(self._calls)
        try:
            yield
        finally:
            sys.setprofile(None)
            for event in listened:
                sa.event.remove(sa.Engine, *event)

    def _calls(self, frame: FrameType, event: str, _given: object) -> None:
        code = frame.f_code
        if event == "call" and code is self._border:
            self._at = self.stations[self._beyond] = Station()
        elif event == "call" and (code.co_name == "<lambda>" or code.co_name[0] != "<"):
            self._at.codes[id(code)] = code

    def _begins(self, connection: sa.Connection) -> None:
        connection.info["is_counted"] = False

    def _executes(self, connection: sa.Connection, _cursor: object, sql: str, *_: object) -> None:
        if sql.startswith("BEGIN"):
            return
        self._at.statements += 1
        is_alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        if is_alone or not connection.info["is_counted"]:
            self._at.transactions += 1
        connection.info["is_counted"] = True


def figures_of(name: str, stations: Iterable[Station]) -> dict[str, Any]:
    """Return the figures of stations together; each file and function counts once."""
    given = list(stations)
    functions = {function for one in given for function in one.functions()}
    files = sorted({file for file, _, _ in functions})
    return {
        "station": name,
        "files": len(files),
        "lines": sum(map(code_lines, files)),
        "functions": len(functions),
        "statements": sum(one.statements for one in given),
        "transactions": sum(one.transactions for one in given),
        "names": files,
    }


@cache
def code_lines(file: str) -> int:
    """Return how many lines of a file hold code."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE and token.string:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)
