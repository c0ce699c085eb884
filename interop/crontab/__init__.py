"""Lines of a crontab, as Debian's cron and cronie read them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cron import InvalidRule, parse_rule
from cron.zone import canonical_name
from interop.crontab.forms import account_before, check_form, may_begin_with_account
from interop.entries import CannotMove, Entry, Refused, entry_or_refused
from tasks.steps.command import STEP

OWNER = "import:crontab"
# Cron starts a command whether or not the last run has ended, and has no time limit.
POLICY: Mapping[str, Any] = {"overlap": "allow", "time_limit": "P7D"}
LONGEST_NAME = 100
_SETTING = re.compile(
    r"""\s*(?P<quote>["']?)(?P<name>[A-Za-z_]\w*)(?P=quote)\s*=\s*(?P<value>.*)"""
)
# A program by its whole path, and words that a shell would not change.
_PLAIN = re.compile(r"/[\w./:@%+,=-]*(?: +[\w./:@%+,=-]+)*", re.ASCII)
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
# A percent sign after an even number of backslashes, which do not escape it.
_BARE_PERCENT = re.compile(r"(?<!\\)(?:\\\\)*%")
# Settings of cron itself, which no command gets.
MAILTO, ZONE, DELAY = "MAILTO", "CRON_TZ", "RANDOM_DELAY"
OF_CRON = frozenset({MAILTO, ZONE, DELAY, "MAILFROM", "LOGNAME", "CONTENT_TYPE"})
OF_MAIL = "MAILTO: failures are mailed, and output is in the log"
AT_BOOT = "it runs when the machine starts, not at an instant of a schedule"
INSTEAD_OF_BOOT = "start it as a service of the machine, such as a systemd unit"
ANOTHER_LINE = "another line begins with the account"
RAN_AS = "it ran as {}: run a worker as that account"
OWNER_OF_FILE = "the owner of the crontab"
OWN_PATH = (
    "cron gave it a PATH of its own, mostly /usr/bin:/bin, the action has the worker's: write the"
    " line PATH=/usr/bin:/bin into the crontab to keep it"
)
RETURNS = "cron makes the carriage return at its end a part of the command, the action does not"
_HEADING = re.compile(
    r"#.*\b(?:dow|wday|weekday|day of week)\b.*\b(?:user|user-name|who)\b", re.IGNORECASE
)
# Signs of other schedulers, which a crontab's own cron refuses.
_SIGN = re.compile(r"(?<![a-z])[lwh](?![a-z])|#|(?<=\d)[lw]|\?|(?<=[a-z]{3})l", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that runs something: its rule, account, command, and the settings above it."""

    number: int
    rule: str
    account: str | None
    command: str
    settings: Mapping[str, str]


@dataclass(slots=True)
class _Reader:
    zone: str
    is_system: bool
    settings: dict[str, str] = field(default_factory=dict)

    def lines(self, text: str) -> Iterator[_Line | tuple[int, str]]:
        """Yield the lines that run something; of an invalid line, its number and text."""
        # Cron ends a line at a line feed only.
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            if found := _SETTING.fullmatch(line):
                self.settings[found["name"]] = _unquoted(found["value"].strip())
                continue
            # A dash keeps a line out of cron's own log.
            parts = _parts(stripped.removeprefix("-"))
            rule, rest = " ".join(parts[:-1]), parts[-1]
            account = None
            if self.is_system:
                account, rest = [*rest.split(None, 1), "", ""][:2]
            if rule and rest.strip():
                yield _Line(number, rule, account, rest.strip(), dict(self.settings))
            else:
                yield number, stripped


def _parts(line: str) -> list[str]:
    """Return the parts of a rule and, last, what follows it; one empty text for an empty line."""
    return line.split(None, 1 if line.startswith("@") else 5) or [""]


def is_system_form(text: str, path: str) -> bool:
    """Return whether a file has a column of accounts: by its place, its heading or its lines."""
    is_place = path == "/etc/crontab" or path.startswith("/etc/cron.d/")
    if is_place or any(_HEADING.match(line.strip()) for line in text.splitlines()):
        return True
    commands = [one.command for one in _Reader("UTC", False).lines(text) if isinstance(one, _Line)]
    return bool(commands) and all(account_before(command) for command in commands)


def entries_of(
    text: str, file: str, zone: str, *, is_system: bool, account: str | None = None
) -> Iterator[Entry | Refused]:
    """Yield what becomes of each line; `zone` is the machine's, `account` a user's own if known."""
    lines = list(_Reader(zone, is_system).lines(text))
    shared = [RETURNS] if "\r\n" in text else []
    if not is_system:
        shared.append(RAN_AS.format(account or OWNER_OF_FILE))
    others = "" if is_system else _with_accounts(lines)
    names = _names([one for one in lines if isinstance(one, _Line)])
    for one in lines:
        if isinstance(one, tuple):
            number, shown = one
            why = "it is neither a setting nor five fields and a command"
            form = "user " if is_system else ""
            instead = f"write: minute hour day month weekday {form}command"
            yield Refused(shown[:LONGEST_NAME], f"{file}:{number}", why, instead)
            continue
        where = f"{file}:{one.number}"
        made = entry_or_refused(
            names[one.number], where, partial(_entry, one, names[one.number], where, zone)
        )
        if isinstance(made, Entry):
            more = [others] if others and may_begin_with_account(one.command) else []
            path = [] if "PATH" in one.settings else [OWN_PATH]
            made = replace(made, remarks=(*made.remarks, *more, *path, *shared))
        yield made


def _with_accounts(lines: Iterable[_Line | tuple[int, str]]) -> str:
    """Return what to check in each line if others begin with an account; empty if none does."""
    found = (account_before(one.command) for one in lines if isinstance(one, _Line))
    account = next(filter(None, found), None)
    if account is None:
        return ""
    return f"{ANOTHER_LINE} {account}: if its first word is one too, import the file with --system"


def _entry(line: _Line, name: str, where: str, zone: str) -> Entry:
    settings, machine_zone = line.settings, zone
    zone = _zone(settings.get(ZONE) or zone)
    hooks, about_mail = _hooks(settings.get(MAILTO, ""))
    check_form(line.rule, line.account, line.command)
    return Entry(
        name=name,
        where=where,
        owner=OWNER,
        operations={STEP: _parameters(line)},
        when={"cron_rule": _rule(line.rule), "timezone": zone},
        policy=POLICY,
        hooks=hooks,
        remarks=(*about_mail, *_of_zone(settings, machine_zone), *_remarks(line)),
    )


def _rule(text: str) -> str:
    if text == "@reboot":
        raise CannotMove(AT_BOOT, INSTEAD_OF_BOOT)
    try:
        parse_rule(text)
    except InvalidRule as error:
        if "~" in text:
            raise CannotMove(
                f"cron chooses a value of {text!r} at random", "write one value of each range"
            ) from None
        raise CannotMove(str(error), "correct it in the crontab") from None
    return text


def _zone(name: str) -> str:
    try:
        return canonical_name(name)
    except InvalidRule as error:
        raise CannotMove(f"{ZONE}: {error}", "correct it in the crontab") from None


def _parameters(line: _Line) -> dict[str, Any]:
    command, given = _parted(line.command)
    env = {name: value for name, value in line.settings.items() if name not in OF_CRON}
    parameters: dict[str, Any] = {}
    if _PLAIN.fullmatch(command):
        parameters["run"] = command.split()
    else:
        parameters["shell"] = command
    if env:
        parameters["env"] = env
    if env.get("HOME", "").startswith("/"):
        parameters["cwd"] = env["HOME"]
    if given:
        parameters["input"] = given
    return parameters


def _parted(command: str) -> tuple[str, str]:
    """Return a command and its input: the first bare `%` ends the command, each later one a line.

    In the command a backslash may itself stand behind one: `\\\\%` has a bare `%`.
    """
    found = _BARE_PERCENT.search(command)
    if found is None:
        return command.replace("\\%", "%").rstrip(), ""
    first, *rest = command[: found.end() - 1], *re.split(r"(?<!\\)%", command[found.end() :])
    lines = "\n".join(rest)
    given = f"{lines}\n" if rest and not lines.endswith("\n") else lines
    return first.replace("\\%", "%").rstrip(), given.replace("\\%", "%")


def _hooks(mailto: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the hooks in place of cron's mail, and what differs."""
    names = [one.strip() for one in mailto.split(",") if one.strip()]
    addresses = [one for one in names if _ADDRESS.fullmatch(one)]
    local = [one for one in names if one not in addresses]
    hooks = {"on_failure": [{"mail": one} for one in addresses]} if addresses else {}
    remarks = (OF_MAIL,) if addresses else ()
    if local:
        what = f"{', '.join(local)} is a mailbox of the machine: write an address into hooks"
        remarks = (*remarks, f"{MAILTO} {what}")
    return hooks, remarks


def _of_zone(settings: Mapping[str, str], machine_zone: str) -> Iterator[str]:
    if settings.get(ZONE, machine_zone) != machine_zone:
        yield f"{ZONE} is its zone, as in cronie; Debian's cron keeps the machine's, {machine_zone}"


def _remarks(line: _Line) -> Iterator[str]:
    if line.account is not None:
        yield RAN_AS.format(line.account)
    if not line.rule.startswith("@") and (sign := _SIGN.search(line.rule)):
        yield f"cron refuses {sign[0]!r} in {line.rule!r}, which other schedulers have"
    if _BARE_PERCENT.search(line.command):
        yield "its command ends at the first %, as in Debian's cron; busybox's cron keeps it whole"
    if line.settings.get(DELAY, "0") != "0":
        yield f"{DELAY} is left out: it runs at the minute"


def _names(lines: Iterable[_Line]) -> dict[int, str]:
    """Return a name for each line, from its command: the same at each import."""
    plain = {one.number: _name(one.command) for one in lines}
    counts = Counter(plain.values())
    full = {
        one.number: f"{plain[one.number]} at {one.rule}"
        if counts[plain[one.number]] > 1
        else plain[one.number]
        for one in lines
    }
    found: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for number, name in full.items():
        seen[name] += 1
        found[number] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return found


def _name(command: str) -> str:
    text = " ".join("".join(char if char.isprintable() else " " for char in command).split())
    text = text.lstrip("-").lstrip() or "command"
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1].rstrip()}…"


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
