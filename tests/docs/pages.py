"""The pages of docs/ by their place: a page, or a folder of pages that is read as one."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def pages_of(place: str) -> list[Path]:
    """Return the page docs/`place`.md, or the pages of that folder, its README first."""
    page = DOCS / f"{place}.md"
    if page.is_file():
        return [page]
    folder = DOCS / place
    return [folder / "README.md", *sorted({*folder.glob("*.md")} - {folder / "README.md"})]


def text_of(place: str) -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in pages_of(place))


def rows_of(place: str) -> list[list[str]]:
    """Return the cells of each row of the tables at `place`, their heads too."""
    rows = [line for line in text_of(place).splitlines() if line.startswith("| ")]
    return [row.strip("| ").split(" | ") for row in rows]


def tracked(*kinds: str) -> list[str]:
    """Return the names of all files of the repository, or of those of these kinds."""
    command = ["git", "ls-files", "-z", *kinds]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.rstrip("\0").split("\0")
