"""What a soak looks at: series of samples, and whether each stays within its bound."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was seen, and whether it is as it should be."""

    what: str
    seen: str
    holds: bool

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'FAIL'} {self.what}: {self.seen}"


def stays_flat(what: str, samples: Sequence[float], unit: str, slack: float) -> Finding:
    """Return whether the last third grows over the middle one by no more than a tenth and `slack`.

    The first third fills caches and tables; growth after it has no end.
    """
    third = max(1, len(samples) // 3)
    middle, last = samples[-2 * third : -third] or samples, samples[-third:]
    before, after = max(middle), max(last)
    seen = f"{before:,.1f} {unit} in the middle, {after:,.1f} {unit} at the end"
    return Finding(what, seen, after <= before * 1.1 + slack)


def at_most(what: str, value: float, most: float, unit: str) -> Finding:
    """Return whether a value is within its limit."""
    return Finding(what, f"{value:,.3f} {unit}, at most {most:,.3f} {unit}", value <= most)


def equals(what: str, value: object, wanted: object) -> Finding:
    """Return whether a value is the one that is wanted."""
    return Finding(what, f"{value}, should be {wanted}", value == wanted)
