"""Documents that must be refused, each with path, value and a part of the remedy.

They are read as new actions in Europe/Paris at NOW. The tests of the command line use them too.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Wrong(NamedTuple):
    """A document with the fault that the test expects; it may have others."""

    id: str
    document: object
    path: str
    value: object
    remedy_part: str


def action(**changes: Any) -> dict[str, Any]:
    """Return a valid, minimal action with `changes`; a key set to `...` is removed."""
    document = {"name": "a", "operations": {"maintenance": True}, "when": {"every": "PT1H"}}
    return {key: value for key, value in {**document, **changes}.items() if value is not ...}


def _top(id: str, key: str, value: object, part: str) -> Wrong:
    return Wrong(id, action(**{key: value}), key, value, part)


def _step(id: str, step: str, value: object, path: str, found: object, part: str) -> Wrong:
    recipients = {"groups": ["all"]}
    document = action(operations={step: value}, recipients=recipients)
    return Wrong(id, document, f"operations.{step}{path}", found, part)


def _when(id: str, when: object, path: str, value: object, part: str) -> Wrong:
    return Wrong(id, action(when=when), f"when{path}", value, part)


def _to(id: str, recipients: object, path: str, value: object, part: str) -> Wrong:
    document = action(operations={"send_execsum": True}, recipients=recipients)
    return Wrong(id, document, f"recipients{path}", value, part)


def _policy(id: str, key: str, value: object, part: str) -> Wrong:
    return Wrong(id, action(policy={key: value}), f"policy.{key}", value, part)


def _hook(id: str, hook: object, path: str, value: object, part: str) -> Wrong:
    return Wrong(
        id, action(hooks={"on_failure": [hook]}), f"hooks.on_failure[0]{path}", value, part
    )


CRON = "0 7 * * 1"
TWO_KINDS = {"cron_rule": CRON, "due_date": "2027-01-01T08:00"}
BOTH_ONLY = {"groups": ["all"], "only_inactive_users": True, "only_inactivated_users": "true"}
DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]

WRONG_DOCUMENTS: list[Wrong] = [
    Wrong("a list", [action()], "document", [action()], "write an object"),
    Wrong("a number", 5, "document", 5, "write an object"),
    Wrong("a text", "refresh", "document", "refresh", "write an object"),
    Wrong("null", None, "document", None, "write an object"),
    Wrong("empty", {}, "operations", None, '"operations": {"refresh": true}'),
    Wrong("no name", action(name=...), "name", None, "is required"),
    Wrong("no operations", action(operations=...), "operations", None, "is required"),
    Wrong("no when", action(when=...), "when", None, "is required"),
    Wrong("unknown key", action(recipient={}), "recipient", {}, '"recipients"'),
    Wrong("unknown key far off", action(zzz=1), "zzz", 1, "known here"),
    Wrong("capital key", action(Name="b"), "Name", "b", '"name"'),
    _top("name a number", "name", 5, "double quotes"),
    _top("name empty", "name", "", "is empty"),
    _top("name blank", "name", "  ", "is empty"),
    _top("name with spaces around", "name", " a ", '"a"'),
    _top("name too long", "name", "n" * 201, "at most 200"),
    _top("name with NUL", "name", "a\0b", "control character"),
    _top("name with a line break", "name", "a\nb", "line break"),
    _top("name with half a character", "name", "a\ud800", "control character"),
    _top("name null", "name", None, "null"),
    _top("active yes", "active", "yes", "true or false"),
    _top("active 1", "active", 1, "true or false"),
    _top("active null", "active", None, "null"),
    _top("active empty", "active", "", "true or false"),
    _top("description a list", "description", ["a"], "double quotes"),
    _top("description too long", "description", "d" * 10_001, "at most 10000"),
    _top("description with NUL", "description", "a\0", "control character"),
    _top("owner a number", "owner", 42, "double quotes"),
    _top("operations a list", "operations", ["refresh"], "write an object"),
    _top("operations empty", "operations", {}, "at least one"),
    _top("only false steps", "operations", {"refresh": "false"}, "at least one"),
    _step("unknown step", "refesh", True, "", True, '"refresh"'),
    _step("unknown step far off", "zzzz", True, "", True, "known here"),
    _step("unknown step that is false", "refesh", False, "", False, '"refresh"'),
    _step("step a number", "refresh", 1, "", 1, "write true, false or an object"),
    _step("step null", "refresh", None, "", None, "write true, false or an object"),
    _step("step a list", "refresh", ["a"], "", ["a"], "write true, false or an object"),
    _step("domains one text", "refresh", {"domains": "a"}, ".domains", "a", '["a"]'),
    _step("domains none", "refresh", {"domains": []}, ".domains", [], "names no domain"),
    _step("domain a number", "refresh", {"domains": ["a", 3]}, ".domains[1]", 3, "double quotes"),
    _step("domains a number", "refresh", {"domains": 3}, ".domains", 3, "[3]"),
    _step("force yes", "refresh", {"force": "yes"}, ".force", "yes", "true or false"),
    _step("from elsewhere", "refresh", {"from": "downloads"}, ".from", "downloads", '"downloaded"'),
    _step("refresh unknown key", "refresh", {"domain": []}, ".domain", [], '"domains"'),
    _step("publish nothing", "publish", {}, "", {}, "publishes nothing"),
    _step("publish all false", "publish", {"data": "false"}, "", {"data": "false"}, "nothing"),
    _step("publish data yes", "publish", {"data": "yes"}, ".data", "yes", "list of names"),
    _step("publish data 1", "publish", {"data": 1}, ".data", 1, "list of names"),
    _step("publish a bad name", "publish", {"data": ["a", ""]}, ".data[1]", "", "is empty"),
    _step("publish notify", "publish", {"data": True, "notify": 0}, ".notify", 0, "true or false"),
    _step("send_email true", "send_email", True, ".template", None, "is required"),
    _step("template a number", "send_email", {"template": 1}, ".template", 1, "double quotes"),
    _step("execsum with a key", "send_execsum", {"to": "x"}, ".to", "x", "remove it"),
    _step("a task not allowed", "celery_task", {"task": "x"}, ".task", "x", "SCHED_CELERY_TASKS"),
    _step("celery_task true", "celery_task", True, ".task", None, "is required"),
    _step("our queue", "celery_task", {"queue": "minutebook.quick"}, ".queue", "minutebook.quick",
          "Minutebook's own"),
    _step("job", "job", {"url": "zzz"}, ".url", "zzz", "http or https URL"),
    _when("when a text", CRON, "", CRON, "write an object"),
    _when("when empty", {}, "", {}, "has no rule"),
    _when("when null", None, "", None, "null"),
    _when("when misspelled", {"cron": CRON}, "", {"cron": CRON}, '"cron_rule"'),
    _when("two kinds", TWO_KINDS, "", TWO_KINDS, "two kinds"),
    _when("unknown zone", {"cron_rule": CRON, "timezone": "Europe/Pariss"}, ".timezone",
          "Europe/Pariss", "Europe/Paris"),
    _when("zone a number", {"cron_rule": CRON, "timezone": 1}, ".timezone", 1, "IANA name"),
    _when("zone empty", {"cron_rule": CRON, "timezone": ""}, ".timezone", "", "IANA name"),
    _when("six fields", {"cron_rule": "0 0 7 * * 1"}, ".cron_rule", "0 0 7 * * 1", "6 fields"),
    _when("never fires", {"cron_rule": "0 0 31 2 *"}, ".cron_rule", "0 0 31 2 *", "never"),
    _when("minute 60", {"cron_rule": "60 * * * *"}, ".cron_rule", "60 * * * *", "minute"),
    _when("rule a number", {"cron_rule": 7}, ".cron_rule", 7, "five fields"),
    _when("tolerance null", {"every": "PT1H", "tolerance": None}, ".tolerance", None, "null"),
    _when("rule null", {"cron_rule": None}, ".cron_rule", None, "null"),
    _when("cron unknown key", {"cron_rule": CRON, "timezon": "UTC"}, ".timezon", "UTC",
          '"timezone"'),
    _when("due date past", {"due_date": "2026-11-21T12:00:00Z"}, ".due_date",
          "2026-11-21T12:00:00Z", "is in the past"),
    _when("due date past in its zone", {"due_date": "2026-11-21T13:00"}, ".due_date",
          "2026-11-21T13:00", "is in the past"),
    _when("due date a day", {"due_date": "2027-01-01"}, ".due_date", "2027-01-01", "instant"),
    _when("due date a number", {"due_date": 1798761600}, ".due_date", 1798761600, "instant"),
    _when("due date no date", {"due_date": "2027-02-30T08:00"}, ".due_date", "2027-02-30T08:00",
          "is not a date"),
    _when("due date far off", {"due_date": "2200-01-01T00:00Z"}, ".due_date", "2200-01-01T00:00Z",
          "2199"),
    _when("due date fraction", {"due_date": "2027-01-01T08:00:00.5Z"}, ".due_date",
          "2027-01-01T08:00:00.5Z", "whole seconds"),
    _when("every zero", {"every": 0}, ".every", 0, "too short"),
    _when("every negative", {"every": -60}, ".every", -60, "too short"),
    _when("every under a tick", {"every": "PT30S"}, ".every", "PT30S", "a tick"),
    _when("every a month", {"every": "P1M"}, ".every", "P1M", "no fixed length"),
    _when("every half a second", {"every": 90.5}, ".every", 90.5, "whole seconds"),
    _when("every true", {"every": True}, ".every", True, "duration"),
    _when("every digits", {"every": "90"}, ".every", "90", "PT1M30S"),
    _when("every huge", {"every": 10**30}, ".every", 10**30, "too long"),
    _when("every in words", {"every": "1 hour"}, ".every", "1 hour", 'write "PT1H"'),
    _when("jitter over every", {"every": 60, "jitter": "PT2M"}, ".jitter", "PT2M", '"PT1M"'),
    _when("from the middle", {"every": 60, "from": "middle"}, ".from", "middle", '"end"'),
    _when("tolerance from the end", {"every": 60, "from": "end", "tolerance": "PT5S"}, ".tolerance",
          "PT5S", "known here"),
    _when("except from the end", {"every": 60, "from": "end", "except": ["12-25"]}, ".except",
          ["12-25"], "known here"),
    _when("each without jitter", {"every": 60, "jitter_each": True}, ".jitter_each", True,
          '"jitter": "PT5M"'),
    _when("jitter of a date", {"due_date": "2027-01-01T08:00Z", "jitter": "PT5M"}, ".jitter",
          "PT5M", "known here"),
    _when("tolerance of every", {"every": 60, "tolerance": "PT1M"}, ".tolerance", "PT1M",
          "not shorter"),
    _when("jitter a number", {"every": 60, "jitter": 5}, ".jitter", 5, "duration"),
    _when("starting_at", {"every": 60, "starting_at": "soon"}, ".starting_at", "soon", "instant"),
    _when("no event of the sun", {"solar": "sundown", "lat": 48.85, "lon": 2.35}, ".solar",
          "sundown", '"sunrise", "solar_noon", "sunset"'),
    _when("sun without a place", {"solar": "sunset"}, ".lat", None, ""),
    _when("sun beyond the pole", {"solar": "sunset", "lat": 90.1, "lon": 0}, ".lat", 90.1,
          "degrees from -90 to 90"),
    _when("sun at a text", {"solar": "sunset", "lat": 0, "lon": "2.35"}, ".lon", "2.35",
          "degrees from -180 to 180"),
    _when("on no built-in event", {"on": "instance.user.create"}, ".on", "instance.user.create",
          "instance.user.created"),
    _when("after without a delay", {"after": "x"}, ".delay", None, ""),
    _when("after with nonsense", {"after": "x", "delay": "soon"}, ".delay", "soon", "ISO 8601"),
    _when("list empty", [], "", [], "is empty"),
    _when("list with an interval", [{"cron_rule": CRON}, {"every": 60}], "[1]", {"every": 60},
          "cron rules, rrules, due dates and events of the sun only"),
    _when("list with a wrong rule", [{"cron_rule": CRON}, {"cron_rule": "x"}], "[1].cron_rule",
          "x", "five"),
    _when("list of texts", [CRON], "[0]", CRON, "write an object"),
    Wrong("sends without recipients", action(operations={"send_execsum": True}), "recipients", None,
          "needs recipients"),
    _to("recipients empty", {}, "", {}, "needs recipients"),
    _to("recipients with empty lists", {"users": [], "groups": []}, "",
        {"users": [], "groups": []}, "needs recipients"),
    _to("both only flags", BOTH_ONLY, ".only_inactivated_users", "true", "cannot be combined with"),
    _to("users one text", {"users": "ann"}, ".users", "ann", '["ann"]'),
    _to("user a number", {"users": ["ann", 3]}, ".users[1]", 3, "double quotes"),
    _to("group null", {"groups": [None]}, ".groups[0]", None, "double quotes"),
    _to("recipients a list", ["ann"], "", ["ann"], "write an object"),
    _to("flag misspelled", {"groups": ["all"], "include_inactive_user": True},
        ".include_inactive_user", True, '"include_inactive_users"'),
    _policy("look_back zero", "look_back", "PT0S", "too short"),
    _policy("look_back negative", "look_back", "-PT5M", "negative"),
    _policy("look_back a number", "look_back", 300, "duration"),
    _policy("look_back over a year", "look_back", "P367D", '"P366D"'),
    _policy("catch_up", "catch_up", "none", '"latest", "all"'),
    _policy("overlap", "overlap", "Skip", '"skip"'),
    _policy("max_waiting 0", "max_waiting", 0, "1 to 1000"),
    _policy("max_waiting text", "max_waiting", "3", "1 to 1000"),
    _policy("max_waiting true", "max_waiting", True, "1 to 1000"),
    _policy("time_limit a year", "time_limit", "P1Y", "no fixed length"),
    _policy("time_limit over a week", "time_limit", "P8D", '"P7D"'),
    _policy("queue", "queue", "Heavy Queue", "lowercase letters"),
    _policy("starts_at", "starts_at", "2027-13-01T00:00", "is not a date"),
    _policy("policy key", "lookback", "PT5M", '"look_back"'),
    Wrong("ends before it starts",
          action(policy={"starts_at": "2027-01-02T00:00", "ends_at": "2027-01-01T00:00"}),
          "policy.ends_at", "2027-01-01T00:00", "not after starts_at"),
    Wrong("ends when it starts",
          action(policy={"starts_at": "2027-01-01T00:00", "ends_at": "2027-01-01T00:00"}),
          "policy.ends_at", "2027-01-01T00:00", "not after starts_at"),
    Wrong("attempts 0", action(policy={"retry": {"max_attempts": 0}}),
          "policy.retry.max_attempts", 0, "1 to 100"),
    Wrong("backoff a month", action(policy={"retry": {"backoff": ["PT1M", "PT5M", "P1M"]}}),
          "policy.retry.backoff[2]", "P1M", "no fixed length"),
    Wrong("backoff empty", action(policy={"retry": {"backoff": []}}),
          "policy.retry.backoff", [], "at least one"),
    _hook("hook of nothing", {}, "", {}, "write one of"),
    _hook("hook of both", {"mail": "a@example.com", "webhook": "https://example.com"}, "",
          {"mail": "a@example.com", "webhook": "https://example.com"}, "write one of"),
    _hook("hook's address", {"mail": "ann"}, ".mail", "ann", "e-mail address"),
    _hook("hook's host", {"mail": "ann@localhost"}, ".mail", "ann@localhost", "e-mail address"),
    _hook("hook's URL", {"webhook": "ftp://example.com"}, ".webhook", "ftp://example.com",
          "http or https"),
    _hook("hook's password", {"webhook": "https://u:p@example.com"}, ".webhook",
          None, "password"),
    _hook("hook's variable", {"webhook": "env:NOT A NAME"}, ".webhook",
          "env:NOT A NAME", "name of a variable"),
    _hook("hook's file", {"webhook": "file:hook.txt"}, ".webhook",
          "file:hook.txt", "absolute path"),
    Wrong("alert after 0", action(hooks={"alert_after": 0}), "hooks.alert_after", 0, "1 to 1000"),
    Wrong("nested too deep", action(description=DEEP),
          "description" + "[0]" * 32, None, "nested too deep"),
]  # fmt: skip
