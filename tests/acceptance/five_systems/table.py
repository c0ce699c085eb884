"""What the users of an older system knew, and what they see here: a table, told row by row."""

from dataclasses import dataclass, field


@dataclass
class Table:
    """The rows of one system: its behaviour, what was done, and what was seen."""

    system: str
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def tell(self, behaviour: str, did: str, seen: object, expected: object) -> None:
        """Add a row; fails if something else was seen than what that system's user expects."""
        assert seen == expected, f"{behaviour}: {did}: seen {seen!r}, expected {expected!r}"
        self.rows.append((behaviour, did, _text(seen)))

    def text(self) -> str:
        """Return the table in Markdown."""
        head = [f"## {self.system}", "", "| its behaviour | done | seen |", "|---|---|---|"]
        return "\n".join(["", *head, *(f"| {' | '.join(row)} |" for row in self.rows), ""])


def _text(seen: object) -> str:
    parts = seen if isinstance(seen, (tuple, list)) else (seen,)
    words = {True: "yes", False: "no", None: "none"}
    said = [words.get(one, one) if isinstance(one, (bool, type(None))) else one for one in parts]
    return ", ".join(map(str, said)).replace("|", "/") or "nothing"
