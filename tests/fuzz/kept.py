"""The kept corpus: a folder of small files for each kind, the seeds and every failure found."""

from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).with_name("corpus")
WORDS = Path(__file__).with_name("words")


def kept(kind: str) -> dict[str, bytes]:
    """Return the kept inputs of a kind by the names of their files."""
    return {file.name: file.read_bytes() for file in sorted((FOLDER / kind).iterdir())}


def keep(kind: str, given: bytes) -> Path:
    file = FOLDER / kind / f"found-{sha256(given).hexdigest()[:12]}"
    file.write_bytes(given)
    return file


def words(kind: str) -> list[bytes]:
    """Return what the language of a kind is made of: a word a line, escaped as in Python."""
    lines = (WORDS / kind).read_text(encoding="ascii").splitlines()
    return [line.encode().decode("unicode_escape").encode("latin-1") for line in lines]
