"""Lines that look like those of a crontab, and are of another form."""

import pwd
import re
from functools import cache
from shutil import which

from interop.entries import CannotMove

# Accounts of services, which are no programs; the machine's own are added.
ACCOUNTS = frozenset(
    {"root", "daemon", "nobody", "www-data", "apache", "nginx", "postgres", "mysql", "redis"}
    | {"rabbitmq", "celery", "deploy", "deployer", "ubuntu", "debian", "admin", "ec2-user"}
    | {"vagrant", "jenkins", "gitlab", "zabbix", "nagios", "prometheus", "elasticsearch", "odoo"}
)
# Names of accounts and of programs at once: a program's whole path must follow them.
AMBIGUOUS = frozenset({"backup", "git", "mail", "man", "news", "sync", "uucp", "bin", "games"})
# Programs, beside those of this machine, that no account is named as. A version may follow.
RUNNERS = frozenset(
    {"cd", "test", "exec", "eval", "source", "if", "sh", "bash", "dash", "zsh", "ksh", "fish"}
    | {"python", "pypy", "uv", "php", "perl", "ruby", "node", "deno", "bun", "java", "lua", "pwsh"}
    | {"nice", "ionice", "nohup", "env", "time", "timeout", "flock", "setsid", "sudo", "chronic"}
    | {"cronic", "ansible-playbook", "rsync", "docker", "logrotate", "command", "while", "until"}
    | {"su", "doas", "gosu", "runuser", "xvfb-run", "run-one", "ssh", "pkill", "killall", "npx"}
    | {"npm", "yarn", "composer", "wp", "drush", "bundle", "poetry", "pipenv", "conda", "make"}
    | {"curl", "wget", "find", "tar", "mysqldump", "pg_dump", "psql", "aws", "kubectl", "podman"}
    | {"rclone", "restic", "borg", "certbot", "spark-submit", "dotnet", "go", "flask", "systemctl"}
    | {"export", "builtin", "type"}
)
# Programs whose names are commands of other programs: `rclone sync`, `bundle exec`, `drush cron`.
SUBCOMMANDS = frozenset({"exec", "install", "sync", "cron"})
_ACCOUNT = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?", re.ASCII)
# FreeBSD's cron also takes a group and a login class: `git:git/daemon`.
_WITH_GROUP = re.compile(rf"{_ACCOUNT.pattern}(?::[\w-]+)?(?:/[\w-]+)?", re.ASCII)
# Where crons keep the crontabs of users, each under the name of its account.
_SPOOLS = re.compile(
    r"/(?:var/spool/cron(?:/crontabs|/tabs)?|var/cron/tabs|usr/lib/cron/tabs|etc/crontabs)/([^/]+)"
)
_NUMBERS = r"[*?]|\d{1,4}(?:[-,]\d{1,4})*"
_NAMES = r"(?:sun|mon|tue|wed|thu|fri|sat)(?:[-,](?:sun|mon|tue|wed|thu|fri|sat))*"
# A word that a sixth field could be, of Quartz or of a cron with seconds.
_FIELD = re.compile(rf"(?:{_NUMBERS}|{_NAMES})(?:/\d{{1,4}})?|l|\d{{1,2}}[lw]", re.IGNORECASE)
# What a shell takes before a program, and a path, also of a script that it reads.
_BEFORE_PROGRAM = re.compile(r"(?:\w+=\S*\s+|[({!]\s*)*")
_PATH = re.compile(r"""(?:\.\s+)?["']?(?:~[\w-]*|\.{1,2}|\$\{?\w+\}?)?["']?/""")
_FLAG = re.compile(r"-[nqs]+")
_PERIODS = re.compile(r"@(?:daily|weekly|monthly|yearly)|\d{1,3}")


def check_form(rule: str, account: str | None, command: str) -> None:
    """Raise CannotMove for a line of anacron, Quartz, OpenBSD, or with another set of columns."""
    first, *others = command.split()
    if _is_of_anacron(rule, command):
        why = "it is a line of anacron: a period in days, a delay in minutes, a name"
        raise CannotMove(why, "write minute, hour, day of month, month, day of week, command")
    if _FIELD.fullmatch(first) and others:
        why = f"it has six fields, and cron has no seconds: its command would begin with {first}"
        raise CannotMove(why, "write minute, hour, day of month, month, day of week")
    if _FLAG.fullmatch(first):
        why = f"{first} before its command is a flag of OpenBSD's cron"
        raise CannotMove(why, "write the line without it, and overlap or hooks into the action")
    _check_account(account, command)


def account_before(command: str) -> str | None:
    """Return the account that a command begins with, as in a system's crontab; None if none."""
    first, *others = command.split(None, 2)
    if not others or first not in ACCOUNTS | _accounts_here() | AMBIGUOUS:
        return None
    return first if first not in AMBIGUOUS or others[0].startswith("/") else None


def _unknown_before_program(command: str) -> str | None:
    """Return the first word if it may be an account: a program follows, and it is none."""
    first, *others = command.split(None, 1)
    if not others or not _WITH_GROUP.fullmatch(first) or _is_program(first):
        return None
    rest = others[0][_BEFORE_PROGRAM.match(others[0]).end() :]  # type: ignore[union-attr]
    word = rest.split(None, 1)[0] if rest else ""
    follows = _PATH.match(rest) or word == first
    return first if follows or (word not in SUBCOMMANDS and _is_program(word)) else None


def _is_program(word: str) -> bool:
    return word.rstrip("0123456789.") in RUNNERS or which(word) is not None


def may_begin_with_account(command: str) -> bool:
    """Return whether the first word could be an account, also with a group."""
    return _WITH_GROUP.fullmatch(command.split(None, 1)[0]) is not None


def account_of(path: str) -> str | None:
    """Return the account whose crontab a file is by its place; None if that says nothing."""
    found = _SPOOLS.fullmatch(path)
    return found[1] if found and _ACCOUNT.fullmatch(found[1]) else None


def _check_account(account: str | None, command: str) -> None:
    if account is None:
        if (found := account_before(command)) is not None:
            why = f"its command begins with the account {found}"
            raise CannotMove(why, "import it with --system")
        if (found := _unknown_before_program(command)) is not None:
            why = f"its command begins with {found}, which is no program here: it may be an account"
            instead = f"import it with --system; if {found} is a program, write its whole path"
            raise CannotMove(why, instead)
    elif _WITH_GROUP.fullmatch(account) is None:
        why = f"its account {account[:60]!r} is no name of an account"
        raise CannotMove(why, "write the account before the command, or import without --system")


def _is_of_anacron(rule: str, command: str) -> bool:
    period, *others = rule.split()
    if not _PERIODS.fullmatch(period):
        return False
    if not others:
        return command.split(maxsplit=1)[0].isdigit()
    name = others[1] if len(others) > 1 else ""
    return others[0].isdigit() and bool(re.fullmatch(r"[a-z]+[._-][\w.-]+", name, re.IGNORECASE))


@cache
def _accounts_here() -> frozenset[str]:
    """Return the accounts of this machine that own no program of their name."""
    return frozenset(one.pw_name for one in pwd.getpwall() if one.pw_uid >= 1000)
