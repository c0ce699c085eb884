"""Read documents from files: one JSON object, a list of them, or JSON Lines; `-` is stdin."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from models.errors import InvalidDocument, Problem, Refused
from models.json_text import LONGEST_DOCUMENT, InvalidJson, read_json

# Documents in a folder that are read only if they are named.
OTHER_FORMATS = {".jsonl", ".ndjson", ".yaml", ".yml"}
# A document with its place: a file, or empty for the body of a request.
Document = tuple[str, object]


def read_text(file: Path, longest: int | None = None, *, newline: str | None = None) -> str:
    """Return a file's text; raises InvalidDocument, naming the file.

    Of a file with more than `longest` bytes only the beginning is read, which is longer too. Its
    lines end with a line feed alone, unless `newline` is empty: then as they are written.
    """
    most = -1 if longest is None else longest + 1
    try:
        if str(file) == "-":
            return sys.stdin.read(most)
        with file.open(encoding="utf-8-sig", newline=newline) as opened:
            return opened.read(most)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidDocument([Problem(str(file), None, f"cannot be read: {reason}")]) from None


def read_documents(file: Path, longest: int = LONGEST_DOCUMENT) -> list[Document]:
    """Return the documents of a file, each with its place; raises InvalidDocument.

    `longest` is the most bytes of JSON in the file, or in each line of JSON Lines.
    """
    text = read_text(file)
    if file.suffix in {".jsonl", ".ndjson"}:
        return [
            (f"{file} line {number}", _read(line, f"{file} line {number}", longest))
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    value = (
        _read_yaml(text, file)
        if file.suffix in {".yaml", ".yml"}
        else _read(text, str(file), longest)
    )
    if isinstance(value, list):
        return [(f"{file}[{number}]", item) for number, item in enumerate(value)]
    return [(str(file), value)]


def read_one(file: Path, longest: int) -> object:
    """Return the one JSON value of a file of at most `longest` bytes; raises InvalidDocument."""
    return _read(read_text(file, longest), str(file), longest)


def documents_in(files: Sequence[Path]) -> list[object]:
    """Return the documents of all files, in order; raises InvalidDocument."""
    return [document for file in files for _, document in read_documents(file)]


def read_all(
    files: Sequence[Path], longest: int = LONGEST_DOCUMENT
) -> tuple[list[Document], list[Problem]]:
    """Return the documents of all files with their places, and the problems of unreadable files."""
    problems: list[Problem] = []
    documents: list[Document] = []
    for file in files:
        try:
            documents += read_documents(file, longest)
        except InvalidDocument as error:
            problems += error.problems
    return documents, problems


def files_in(paths: Sequence[Path], *, may_be_empty: bool = False) -> list[Path]:
    """Return the paths, each folder replaced by its files; raises Refused for one without any.

    A folder is read with those below it. Hidden files are left out.
    A folder that holds no document in any format may be empty if `may_be_empty`.
    Raises Refused for a link to another folder, too: its actions would look as if they were gone.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        shown = [one for one in path.rglob("*") if not _is_hidden(one, path)]
        for one in shown:
            if one.is_symlink() and one.is_dir():
                raise Refused(f"{one} is a link to a folder, which is not read; name it as well")
        inside = sorted(one for one in shown if one.name.endswith(".json") and _is_document(one))
        if not inside and not (may_be_empty and not any(map(_is_of_another_format, shown))):
            raise Refused(f"the folder {path} holds no *.json file; name another one")
        found += inside
    return found


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _is_of_another_format(file: Path) -> bool:
    return file.suffix in OTHER_FORMATS


def _is_document(file: Path) -> bool:
    # A dangling link counts as a document, so that reading it is an error.
    return file.is_file() or file.is_symlink()


@contextmanager
def naming_each(places: Sequence[str]) -> Iterator[None]:
    """Put places into an InvalidDocument that names documents by their number, as `[1]`."""

    def place(found: re.Match[str]) -> str:
        number = int(found[1])
        return places[number] + ":" * found[0].startswith("[") if number < len(places) else found[0]

    try:
        yield
    except InvalidDocument as error:
        raise InvalidDocument(
            [
                Problem(
                    re.sub(r"^\[(\d+)\]", place, one.path),
                    one.value,
                    re.sub(r"document \[(\d+)\]", place, one.remedy),
                )
                for one in error.problems
            ]
        ) from None


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Put the file in front of each path of an InvalidDocument."""
    try:
        yield
    except InvalidDocument as error:
        raise located(str(file), error) from None


def located(where: str, error: InvalidDocument) -> InvalidDocument:
    """Return the error with the file in front of each path."""
    before = f"{where}: " if where else ""
    problems = [Problem(before + p.path, p.value, p.remedy) for p in error.problems]
    return InvalidDocument(problems)


def _read(text: str, where: str, longest: int) -> object:
    try:
        return read_json(text, longest=longest)
    except InvalidJson as error:
        raise located(where, error) from None


def _read_yaml(text: str, file: Path) -> Any:
    from runtime.documents import InvalidYaml, read_yaml

    try:
        return read_yaml(text)
    except InvalidYaml as error:
        raise InvalidDocument([Problem(str(file), None, f"is not YAML: {error}")]) from None
