from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interop.crontab import (
    ANOTHER_LINE,
    OF_MAIL,
    OWN_PATH,
    OWNER_OF_FILE,
    POLICY,
    RAN_AS,
    entries_of,
    is_system_form,
)
from interop.crontab.forms import account_of
from interop.entries import Entry
from interop.outcomes import Outcome, outcomes
from tests.moved import CONTEXT
from tests.tables import table

ANY_COMMAND = replace(CONTEXT, commands=None)
THIRTY = (Path(__file__).parent / "thirty.crontab").read_text()
PARIS = "Europe/Paris"


def moved(text: str, *, is_system: bool = False) -> list[Outcome]:
    """Return what becomes of the lines, without what a report says of each crontab."""
    found = entries_of(text, "tab", PARIS, is_system=is_system)
    always = {OWN_PATH, RAN_AS.format(OWNER_OF_FILE)}
    own = (
        replace(one, remarks=tuple(said for said in one.remarks if said not in always))
        if isinstance(one, Entry)
        else one
        for one in found
    )
    return list(outcomes(own, ANY_COMMAND))


def only(text: str, *, is_system: bool = False) -> Any:
    (found,) = moved(text, is_system=is_system)
    return found


def test_a_plain_line_becomes_a_program_with_crons_own_policy() -> None:
    found = only("15 2 * * * /srv/backup.sh --full")

    assert (found.kind, found.where) == ("same", "tab:1")
    assert found.document == {
        "name": "/srv/backup.sh --full",
        "owner": "import:crontab",
        "operations": {"command": {"run": ["/srv/backup.sh", "--full"]}},
        "when": {"cron_rule": "15 2 * * *", "timezone": PARIS},
        "policy": POLICY,
    }


@pytest.mark.parametrize(
    ("line", "command"), table(__file__, "a_command_keeps_its_shell_input_and_settings")
)
def test_a_command_keeps_its_shell_input_and_settings(line: str, command: object) -> None:
    assert only(line).document["operations"]["command"] == command


@pytest.mark.parametrize(("text", "remarks"), table(__file__, "what_differs_is_remarked"))
def test_what_differs_is_remarked(text: str, remarks: list[str]) -> None:
    found = only(text)

    assert (found.kind, found.remarks) == ("differs" if remarks else "same", tuple(remarks))
    assert found.document["when"]["cron_rule"] in text


def test_mailto_becomes_a_hook_and_says_what_differs() -> None:
    found = only("MAILTO=ann@shop.example,root\n0 1 * * * /bin/a")

    assert found.document["hooks"] == {"on_failure": [{"mail": "ann@shop.example"}]}
    assert found.remarks[0] == OF_MAIL
    assert "root is a mailbox of the machine" in found.remarks[1]
    assert only('MAILTO=""\n0 1 * * * /bin/a').kind == "same"


@pytest.mark.parametrize(
    ("line", "why", "instead"), table(__file__, "what_cannot_move_says_what_to_do_instead")
)
def test_what_cannot_move_says_what_to_do_instead(line: str, why: str, instead: str) -> None:
    found = only(line)

    assert found.kind == "cannot"
    assert why in found.why
    assert instead in found.instead


def test_a_program_is_no_account() -> None:
    found = only("* * * * * /usr/bin/foo bar", is_system=True)

    assert found.kind == "cannot"
    assert "is no name of an account" in found.why
    assert "import without --system" in found.instead


def test_a_file_whose_lines_begin_with_accounts_is_of_the_system() -> None:
    line = "0 1 * * *\twww-data\tphp /srv/cron.php"
    assert is_system_form(f"SHELL=/bin/sh\n{line}\n0 2 * * * root /bin/b\n", "/tmp/x")
    assert not is_system_form(f"{line}\n0 2 * * * /bin/b\n", "/tmp/x")

    (found, other) = moved(f"{line}\n0 2 * * * /bin/b\n")
    assert (found.kind, found.instead, other.kind) == ("cannot", "import it with --system", "same")


@pytest.mark.parametrize(
    "command",
    [
        "svc-app /srv/app",
        "git:git /bin/a",
        "svc-etl ./run.sh",
        "svc-etl . ~/.profile && etl",
        "svc-etl python3.11 /srv/run.py",
        "svc-etl (cd /srv && ./run.sh)",
        "svc-etl TZ=UTC sh -c etl",
        "svc-etl [ -x /srv/run ] && /srv/run",
        "hadoop java -jar /srv/a.jar",
        "airflow airflow db clean",
    ],
)
def test_a_word_before_a_program_that_is_none_may_be_an_account(command: str) -> None:
    line = f"0 0 * * * {command}"

    found = only(line)

    assert (found.kind, found.document) == ("cannot", None)
    assert "which is no program here: it may be an account" in found.why
    assert "write its whole path" in found.instead
    assert only(line, is_system=True).kind == "differs"


@pytest.mark.parametrize(
    "command",
    [
        "sudo python3 x",
        "env A=b sh x",
        "nice python3 x",
        "cd /x && sh y",
        "bundle exec rake x",
        "export A=b; sh x",
        "acme renew --all",
        "acme sync /x",
        "while true; do sh x; done",
    ],
)
def test_a_program_and_what_it_runs_is_moved(command: str) -> None:
    assert only(f"0 0 * * * {command}").kind == "same"


@pytest.mark.parametrize(("line", "why"), table(__file__, "lines_of_another_form_are_refused"))
def test_lines_of_another_form_are_refused(line: str, why: str) -> None:
    found = only(line)

    assert found.kind == "cannot"
    assert why in f"{found.why}; {found.instead}"


@pytest.mark.parametrize(
    "heading",
    [
        "#min hour mday month wday who command",
        "# *  *  *  *  *  user-name  command   (dow user)",
    ],
)
def test_a_heading_with_a_column_of_accounts_is_recognized(heading: str) -> None:
    assert is_system_form(f"{heading}\n0 0 * * * operator /x\n", "/home/a/crontab")


def test_a_system_crontab_has_accounts() -> None:
    text = "# m h dom mon dow user\tcommand\n17 *\t* * *\troot    cd / && run-parts /etc/x\n"

    found = only(text, is_system=True)

    assert found.remarks == ("it ran as root: run a worker as that account",)
    assert found.document["operations"]["command"] == {"shell": "cd / && run-parts /etc/x"}
    assert is_system_form(text, "/tmp/x")
    assert is_system_form("", "/etc/cron.d/x")
    assert not is_system_form("# m h  dom mon dow   command\n", "/tmp/x")


@pytest.mark.parametrize(
    ("line", "is_reported"),
    [
        ("0 1 * * * root", True),
        ("0 1 * * * vmail doveadm x", True),
        ("0 1 * * * /bin/a", False),
        ("0 1 * * * [ -x /bin/a ] && /bin/a", False),
    ],
)
def test_a_line_beside_those_with_accounts_may_have_one_too(line: str, is_reported: bool) -> None:
    found, _ = moved(f"{line}\n0 2 * * * root /bin/b\n")

    assert any(one.startswith(ANOTHER_LINE) for one in found.remarks) == is_reported


@pytest.mark.parametrize(
    ("path", "account"),
    [
        ("/var/spool/cron/crontabs/www-data", "www-data"),
        ("/etc/crontabs/root", "root"),
        ("/var/spool/cron/crontabs/x/y", None),
        ("/home/anna/crontabs/root", None),
    ],
)
def test_the_place_of_a_crontab_tells_its_account(path: str, account: str | None) -> None:
    assert account_of(path) == account


@pytest.mark.parametrize(
    ("text", "is_system", "account", "remarks"),
    table(__file__, "a_crontab_says_as_whom_and_with_which_path_it_ran"),
)
def test_a_crontab_says_as_whom_and_with_which_path_it_ran(
    text: str, is_system: bool, account: str | None, remarks: list[str]
) -> None:
    found = entries_of(f"{text}\n", "tab", PARIS, is_system=is_system, account=account)

    (made,) = outcomes(found, ANY_COMMAND)

    assert (made.kind, made.remarks) == ("differs", tuple(remarks))


def test_each_line_has_a_name_of_its_own() -> None:
    text = "0 1 * * * /bin/a\n0 2 * * * /bin/a\n0 2 * * * /bin/a\n0 3 * * * - \n"

    assert [one.name for one in moved(text)] == [
        "/bin/a at 0 1 * * *", "/bin/a at 0 2 * * *", "/bin/a at 0 2 * * * (2)", "command",
    ]  # fmt: skip


def test_thirty_lines_keep_their_rules_and_zones() -> None:
    found = moved(THIRTY)

    whens = [one.document["when"] for one in found if one.document is not None]
    assert [(when["cron_rule"], when["timezone"]) for when in whens] == list(zones_of(THIRTY))
    assert len(whens) == len(found) == 30
    assert found == moved(THIRTY)


def zones_of(text: str) -> Any:
    """Yield the rule and zone of each line, read independently."""
    zone = PARIS
    for line in text.splitlines():
        zone = line.partition("=")[2] if line.startswith("CRON_TZ") else zone
        if line and (line[0] in "*-@" or line[0].isdigit()):
            words = line.removeprefix("-").split()
            yield words[0] if words[0].startswith("@") else " ".join(words[:5]), zone
