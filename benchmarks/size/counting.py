"""Count the files, their lines of code, and those that import them."""

import ast
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What users do not run.
APART = ("tests", "benchmarks", "examples")
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def files() -> list[Path]:
    """Return all Python files that git keeps."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def is_product(file: Path) -> bool:
    """Return whether a file belongs to what users run."""
    return file.relative_to(ROOT).parts[0] not in APART


def is_of(file: Path, place: str) -> bool:
    """Return whether a file lies in that top-level folder."""
    return file.relative_to(ROOT).parts[0] == place


def lines_of_code(file: Path) -> int:
    """Return the number of lines with code: no docstrings, no comments, no blank ones."""
    with tokenize.open(file) as opened:
        tokens = list(tokenize.generate_tokens(opened.readline))
    coded: set[int] = set()
    for token in tokens:
        if token.type not in NO_CODE:
            coded |= set(range(token.start[0], token.end[0] + 1))
    return len(coded - _docstrings(ast.parse(file.read_text())))


def _docstrings(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def lines(file: Path) -> int:
    """Return the number of all lines."""
    return len(file.read_text().splitlines())


def importers(product: Iterable[Path]) -> dict[Path, set[Path]]:
    """Return by which files of the product each of them is imported, lazily or not."""
    known = {_module(file): file for file in product}
    found: dict[Path, set[Path]] = defaultdict(set)
    for file in known.values():
        for name in _imported(file):
            if name in known and known[name] != file:
                found[known[name]].add(file)
    return found


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(file: Path) -> Iterable[str]:
    """Yield the names that a file imports; of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
