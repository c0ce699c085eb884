"""Run what a page shows: its ```console blocks for real, in a folder of their own.

A line `$ command` is run, the lines under it are what it prints. They are compared loosely:

- `…` stands for any text in a line; a line that is only `…` stands for any lines;
- an id, an instant, a clock time or a weekday's date stands for any other of its kind. An id that
  a page shows is remembered: a later command means the one that was really printed.

A ```json, ```python, ```yaml or ```ics block after a paragraph with "as `NAME`" is saved as that
file.
`make up` starts `minutebook up --demo` in the background, `minutebook up` and `celery` themselves,
with or without `> FILE 2>&1 &`; each line that is shown has to come. `export` holds for what
follows, until `unset`, with `$PWD` for the folder.
`source …` does nothing: the commands are on the path already.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from runtime.clock import wait_for
from tests.acceptance.warm import OURS, Forked, warm
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60.0
# What the page shows comes in a while: a worker is ready, a full minute is over.
LIVE = ("minutebook status", "minutebook run list", "minutebook run show")
LIVE_S = 130.0
BACKGROUND = ("make up", "minutebook up", "celery ")
TO_FILE = re.compile(r"(?: > (?P<log>\S+) 2>&1)? &")
SHOWN_PORT = ":8265"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
LOOSE = {
    UUID: UUID,
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    r"\b[A-Z][a-z]{2} \d{4}-\d\d-\d\d": r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d",
    r"[+-]\d\d:\d\d(?= [A-Z])": r"[+-]\d\d:\d\d",
    # A whole minute is printed without its seconds.
    r"\d\d:\d\d:\d\d": r"\d\d:\d\d(?::\d\d)?",
    # A worker may be quicker than the command that shows the state.
    r"(?<=[0-9a-f]{4} )queued$": r"(?:queued|running|success|pending: .*)",
    r"…": r".*",
    r" {2,}": r" +",
}
_PARTS = re.compile("|".join(f"(?P<p{n}>{part})" for n, part in enumerate(LOOSE)))


@dataclass(frozen=True)
class Saved:
    """A file that the reader is asked to save."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command and what the page says it prints."""

    text: str
    shown: tuple[str, ...]


def parts_of(page: str) -> Iterator[Saved | Command]:
    """Yield a page's files and commands, in order."""
    for block in re.finditer(r"^```(\w+)\n(.*?)^```", page, re.M | re.S):
        paragraph = page[: block.start()].rstrip().rsplit("\n\n", 1)[-1]
        named = re.search(r"as `([\w./-]+\.\w+)`", paragraph)
        if block[1] == "console":
            yield from _commands(block[2])
        elif named:
            yield Saved(named[1], block[2])


def _commands(block: str) -> Iterator[Command]:
    for one in re.split(r"^\$ ", block, flags=re.M)[1:]:
        text, *shown = one.rstrip("\n").split("\n")
        yield Command(text, tuple(shown))


def pattern_of(shown: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches the whole output that a page shows."""
    lines = [r"(?:.*\n)*?" if line.strip() == "…" else _line(line) + r"\s*\n" for line in shown]
    return re.compile("".join(lines) + r"\Z")


def _line(line: str) -> str:
    pattern, end = "", 0
    for found in _PARTS.finditer(line):
        loose = list(LOOSE.values())[int(str(found.lastgroup)[1:])]
        group = f"({loose})" if loose == UUID else f"(?:{loose})"
        pattern += re.escape(line[end : found.start()]) + group
        end = found.end()
    return pattern + re.escape(line[end:])


def _matched(output: str, shown: tuple[str, ...]) -> re.Match[str] | None:
    if output and not output.endswith("\n"):
        output += "\n"
    return pattern_of(shown).match(output)


def _is_celery(child: subprocess.Popen[Any] | Forked) -> bool:
    return "celery" in str(child.args)


@dataclass
class Terminal:
    """A folder with the examples in it, and the commands that are run there."""

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)
    children: list[subprocess.Popen[Any] | Forked] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("examples", "scheduler_server.py"):
            (self.folder / name).symlink_to(ROOT / name)
        mine = {key: value for key, value in os.environ.items() if not key.startswith("SCHED_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{mine.get('PATH', '')}"
        # Several pages run at once, each with a port of its own for the one that pages show.
        self._port = str(free_port())
        web = {"SCHED_WEB_PORT": self._port}
        self.environment: dict[str, str] = {**mine, "PATH": path, **web}

    def play(self, part: Saved | Command) -> None:
        """Save the file, or run the command and hold its output against the page."""
        if isinstance(part, Saved):
            (self.folder / part.name).parent.mkdir(parents=True, exist_ok=True)
            content = part.text.replace(SHOWN_PORT, f":{self._port}")
            (self.folder / part.name).write_text(content, encoding="utf-8")
            return
        text = re.sub(UUID, lambda found: self.ids.get(found[0], found[0]), part.text)
        text = text.replace(SHOWN_PORT, f":{self._port}")
        if text.startswith("source "):
            return
        if text.startswith("export "):
            for name in re.findall(r"(\w+)=", text):
                self.environment[name] = self._output_of(f'{text}; printf %s "${name}"')
        elif text.startswith("unset "):
            for name in text.split()[1:]:
                del self.environment[name]
        elif text.startswith(BACKGROUND):
            self._start(text, part.shown)
        else:
            self._compare(text, part.shown)

    def close(self) -> None:
        """Stop what runs in the background as Ctrl-C does; it ends without an error."""
        codes = []
        # What was started last needs what was started before it, and a worker needs its broker.
        last_first = self.children[::-1]
        for child in sorted(last_first, key=_is_celery, reverse=True):
            # Celery's exit code is 1 after a Ctrl-C that ended all well.
            child.send_signal(signal.SIGTERM if _is_celery(child) else signal.SIGINT)
            codes.append(child.wait(TIMEOUT_S))
        assert codes == [0] * len(self.children), "a background command failed"

    def _start(self, text: str, shown: tuple[str, ...]) -> None:
        """Start a command that goes on; wait until each shown line is among what it prints."""
        redirected = TO_FILE.search(text)
        log = self.folder / f"background-{len(self.children)}.log"
        if redirected:
            text = text[: redirected.start()]
            log = self.folder / (redirected["log"] or log.name)
        words = shlex.split("minutebook up --demo" if text == "make up" else text)
        with log.open("w") as file:
            self.children.append(self._process(words, file))
        lines = [re.compile(_line(line)) for line in shown if line.strip() != "…"]

        def said() -> str:
            return log.read_text().replace(f":{self._port}", SHOWN_PORT)

        came = wait_for(lambda: all(line.search(said()) for line in lines), TIMEOUT_S)
        assert came, f"$ {text}\n{log.read_text()}"

    def _compare(self, text: str, shown: tuple[str, ...]) -> None:
        if text.startswith(LIVE):
            wait_for(lambda: bool(_matched(self._run(text), shown)), LIVE_S, poll_s=1.0)
        output = self._run(text)
        matched = _matched(output, shown)
        assert matched, "\n".join([f"$ {text}", output, "— but the page shows —", *shown])
        ids = re.findall(UUID, "\n".join(shown))
        self.ids.update(zip(ids, matched.groups(), strict=True))

    def _run(self, text: str) -> str:
        return self._output_of(text).replace(f":{self._port}", SHOWN_PORT)

    def _output_of(self, text: str) -> str:
        is_ours = text.startswith("minutebook ") and not re.search(r"[|&;$<>]", text)
        with TemporaryFile("w+") as output:
            words = shlex.split(text) if is_ours else ["bash", "-c", text]
            self._process(words, output).wait(TIMEOUT_S)
            output.seek(0)
            return output.read()

    def _process(self, words: list[str], output: IO[str]) -> subprocess.Popen[Any] | Forked:
        """Start a command; ours without its second of imports."""
        if words[0] == "minutebook":
            command = [sys.executable, *OURS, *words[1:]]
            is_up = words[1] == "up"
            return warm().start(
                command, self.environment, self.folder, (output, output), with_children=is_up
            )
        return subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdout=output, stderr=output
        )
