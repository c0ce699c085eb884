"""Services of systemd: the command that one runs, and as whom."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from models.action.policy import LONGEST_TIME_LIMIT
from moving.entries import CannotMove
from moving.systemd.unit import ON, Section, last, literal, span_of, words

# The setting that limits a program's run: a `oneshot` service counts as starting until its end.
OF_ONESHOT, OF_OTHERS = ("TimeoutStartSec", "TimeoutSec"), ("RuntimeMaxSec",)
# The settings that are read, or do not affect what runs when.
OF_SERVICES = frozenset(
    {"Environment", "ExecReload", "ExecStart", "Type", "WorkingDirectory"}
    | {*OF_ONESHOT, *OF_OTHERS}
)
NO_USER = "it names no User and ran as root: run a worker as that account"
OF_A_USER = "it ran as the user whose unit it is: run a worker as that account"


def account_of(own: Section, *, is_of_user: bool) -> Iterator[str]:
    """Yield as whom a service without an account of its own ran."""
    if is_of_user:
        yield OF_A_USER
    elif not last(own, "User") and last(own, "DynamicUser").lower() not in ON:
        yield NO_USER


def command_of(own: Section, *, is_of_user: bool) -> tuple[dict[str, Any], timedelta]:
    """Return the step `command` of a service, and its time limit; raises CannotMove.

    A service of the machine begins in `/`, that of a user in the user's home.
    """
    lines = own.get("ExecStart", ())
    others = [name for name, given in own.items() if name[:4] == "Exec" and given]
    more = [name for name in others if name not in OF_SERVICES]
    if len(lines) != 1 or more:
        why = f"its service has {' and '.join([f'{len(lines)} ExecStart', *more])}"
        raise CannotMove(why, "write a script that runs all of them in turn")
    found: dict[str, Any] = {"run": _program(lines[0])}
    if own.get("WorkingDirectory"):
        found["cwd"] = literal(last(own, "WorkingDirectory").removeprefix("-"), "%")
    elif not is_of_user:
        found["cwd"] = "/"
    pairs = [one for text in own.get("Environment", ()) for one in words(literal(text, "%"))]
    if pairs:
        found["env"] = dict(one.partition("=")[::2] for one in pairs)
    keys = OF_ONESHOT if last(own, "Type") == "oneshot" else OF_OTHERS
    limit = next(filter(None, (span_of(own, key) for key in keys)), LONGEST_TIME_LIMIT)
    return found, min(limit, LONGEST_TIME_LIMIT)


def _program(line: str) -> list[str]:
    if line[0] in "-@:+!|":
        raise CannotMove(f"its ExecStart {line[:60]!r} has a prefix", "write it without")
    found = words(literal(line, "%$"))
    if ";" in found:
        why = f"its ExecStart {line[:60]!r} holds several programs, separated by ;"
        raise CannotMove(why, "write a script that runs all of them in turn")
    return found
