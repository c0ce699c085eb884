"""What a check of a release found: one line, with what to do if it is a problem."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A fact; `remedy` is empty if it is as it should be."""

    fact: str
    remedy: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether nothing is to be done."""
        return not self.remedy

    def __str__(self) -> str:
        return f"ok {self.fact}" if self.is_ok else f"problem {self.fact}: {self.remedy}"
