"""`minutebook action edit`: a document in the user's editor, until it is valid or given up."""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.render import print_warning
from models.errors import InvalidDocument, Outdated, Refused
from models.json_text import LONGEST_DOCUMENT, read_json
from services import changes, upcoming
from services.backend import Backend
from services.changes.result import Change, Changes
from services.files import read_text

EDITOR = "vi"
# No line of a JSON document begins with it.
COMMENT = "#"
BACK = "nothing was stored; correct this and save, or leave the file unchanged to give up"


def edit(
    backend: Backend, name: str, agreed: Callable[[Changes], None], *, is_repeatable: bool
) -> Change:
    """Let the user edit an action, and store it unless it was left unchanged.

    `agreed` raises if the user rejects the plan. If `is_repeatable`, a faulty document goes
    back to the editor. Raises Outdated if another change came first.
    """
    found = backend.call(upcoming.show, name)
    named = str(found.uid or name)
    with _draft_of(found) as draft:
        edited = _valid(backend, (named, found.revision), draft, is_repeatable=is_repeatable)
        if edited is None:
            known = ("uid", "name", "revision", "active")
            return Change(**{key: getattr(found, key) for key in known}, change="unchanged")
        document, tried = edited
        agreed(Changes((tried,)))
        return backend.call(changes.put, named, document, found.revision)


@dataclass
class _Draft:
    """A document in a file, with the text that was read last."""

    file: Path
    original: str
    text: str

    def open(self, faults: Exception | None) -> None:
        """Let the user edit the file, with faults as comments on top."""
        lines = [BACK, *str(faults).splitlines()] if faults else []
        comments = "".join(f"{COMMENT} {line}\n" for line in lines)
        self.file.write_text(comments + self.text, encoding="utf-8")
        _run_editor(self.file)
        lines = read_text(self.file).splitlines(keepends=True)
        self.text = "".join(line for line in lines if not line.startswith(COMMENT))

    def keep(self) -> None:
        """Keep what the user wrote, and print where; if there is nothing, delete the file."""
        if self.text != self.original:
            # Without the comments, so that `action apply` takes it.
            self.file.write_text(self.text, encoding="utf-8")
        if self.file.read_bytes() == self.original.encode():
            self.file.unlink()
        else:
            print_warning(f"nothing was stored; your draft is kept in {self.file}")


@contextmanager
def _draft_of(found: upcoming.Action) -> Iterator[_Draft]:
    """Yield the draft of an action's document; if it was changed but not stored, its file stays."""
    document = found.document
    is_text = isinstance(document, str)
    text = document if is_text else json.dumps(document, indent=2, ensure_ascii=False)
    slug = re.sub(r"[^\w.-]+", "-", found.name, flags=re.ASCII)[:50]
    handle, path = tempfile.mkstemp(prefix=f"{slug}-", suffix=".json")
    os.close(handle)
    draft = _Draft(Path(path), f"{text}\n", f"{text}\n")
    try:
        yield draft
    except BaseException:
        draft.keep()
        raise
    draft.file.unlink(missing_ok=True)


def _valid(
    backend: Backend, read: tuple[str, int | None], draft: _Draft, *, is_repeatable: bool
) -> tuple[object, Change] | None:
    """Return the edited document with what it would do, None if it was left unchanged.

    `read` is the action and its revision as it was read.
    """
    faults: InvalidDocument | Refused | None = None
    while True:
        before = draft.text
        draft.open(faults)
        if draft.text == draft.original:
            return None
        if faults is not None and draft.text == before:
            raise faults
        try:
            document = read_json(draft.text, longest=LONGEST_DOCUMENT)
            return document, backend.call(changes.put, read[0], document, read[1], dry_run=True)
        except (InvalidDocument, Refused) as error:
            if not is_repeatable or isinstance(error, Outdated):
                raise
            faults = error


def _run_editor(file: Path) -> None:
    """Run the user's editor; raises Refused if it cannot start or fails."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or EDITOR
    try:
        done = subprocess.run([*shlex.split(named), str(file)], check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(
            f"the editor {named!r} cannot be started: {reason}; set VISUAL or EDITOR to another"
        ) from None
    if done.returncode:
        raise Refused(f"the editor {named!r} ended with exit code {done.returncode}")
