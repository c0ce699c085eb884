"""The names of log events: each message has one, which stays when its words change.

JSON lines have the name as `event` and the values of the message under the names of `fields`.
`docs/reference/log-events.md` lists them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

# What steps log. One logger for all operations: loggers are never freed.
STEP_LOGGER = "minutebook.operation"
STEP_LINE = "step_line"


class LogEvent(NamedTuple):
    """What a message is about, and the names of its values in order."""

    name: str
    fields: tuple[str, ...] = ()


def _event(name: str, fields: str = "") -> LogEvent:
    return LogEvent(name, tuple(fields.split()))


# The key is the message without its values.
EVENTS: Mapping[str, LogEvent] = {
    "%d actions run now": _event("startup_runs", "actions"),
    "%d connections are open: another one is closed": _event("agent_full", "connections"),
    "%d jobs could not be taken together": _event("jobs_not_taken", "jobs"),
    "%s %s failed": _event("request_failed", "method path"),
    "%s cannot be imported: %s": _event("steps_not_imported", "source error"),
    "%s does not stop; killing it": _event("process_killed", "process"),
    "%s ended with %s; starting it again": _event("process_ended", "process code"),
    "%s cannot be started: %s; trying again": _event("process_not_started", "process error"),
    "%s while the database is unavailable: %s": _event("look_without_database", "look error"),
    "%s after an unexpected error": _event("look_failed", "look"),
    "%s: operation %s ended: %s%s": _event("operation_ended", "triggerer operation state reason"),
    "%s: operation %s started (attempt %d)": _event(
        "operation_started", "triggerer operation attempt"
    ),
    "%s; nothing more is written": _event("lease_lost", "error"),
    "a connection broke before its message was acknowledged: the broker repeats it": _event(
        "message_not_acknowledged"
    ),
    "a connection broke: %s": _event("agent_connection_broke", "error"),
    "a connection is closed after an unexpected error": _event("agent_connection_failed"),
    "a download of small app %s was cut: %s": _event("download_cut", "app error"),
    "a job could not be taken, the database is unavailable: %s": _event("job_not_taken", "error"),
    "a job whose worker disconnected waits until its lease expires: %s": _event(
        "job_left_to_lease", "error"
    ),
    "a message in %s was moved to %s: %s": _event("message_put_aside", "queue aside reason"),
    "a message in %s (%s) cannot be moved away: %s": _event("message_stays", "queue reason error"),
    "a part of this sweep failed; the next sweep tries again": _event("sweep_failed"),
    "action %r is overdue: %s": _event("action_overdue", "action reason"),
    "action %s is quarantined: %s": _event("action_quarantined", "action reason"),
    "action %s: occurrences due before its edit are lost": _event(
        "edit_lost_occurrences", "action"
    ),
    "actions stay locked by another process (%s): %s": _event("actions_locked", "holder error"),
    "agent serves %s": _event("agent_started", "path"),
    "all files are in %s; Ctrl-C stops everything and loses nothing": _event("home_folder", "home"),
    "what became of a task is not recorded, its rows stay locked: %s": _event(
        "sending_not_recorded", "error"
    ),
    "this daemon decides nothing: %s": _event("older_release", "error"),
    "backfill %s attempt %d: %s": _event("backfill_turn", "backfill attempt outcome"),
    "backfill %s failed": _event("backfill_failed", "backfill"),
    "broker of the Celery application unavailable, %d tasks wait, %d are in doubt: %s": _event(
        "application_broker_unavailable", "waiting in_doubt error"
    ),
    "broker unavailable, %d %s wait: %s": _event("broker_unavailable", "waiting kind error"),
    "daemon %s started on %s": _event("daemon_started", "daemon database"),
    "daemon %s stopped": _event("daemon_stopped", "daemon"),
    "database unavailable at the start: %s": _event("database_unavailable", "error"),
    "database unavailable while stopping: %s": _event("database_unavailable", "error"),
    "database unavailable, a claim is put off: %s": _event("database_unavailable", "error"),
    "database unavailable, the next tick sends: %s": _event("database_unavailable", "error"),
    "database unavailable, trying again: %s": _event("database_unavailable", "error"),
    "database unavailable: %s": _event("database_unavailable", "error"),
    "demo action %s: %s": _event("demo_action", "action change"),
    "down %s": _event("downtime", "what"),
    "heartbeat of %s: database unavailable: %s": _event("heartbeat_failed", "operation error"),
    "look_back %s of %r %s": _event("look_back_too_long", "look_back action reason"),
    "made the home folder %s; --home names another": _event("home_folder_made", "home"),
    "mail is written to %s (set SCHED_SMTP_URL to send it)": _event("mail_folder", "folder"),
    "new tz release or kernel: the next tick schedules all actions again": _event("kernel_adopted"),
    "not all actions could be run at the start: %s": _event("startup_runs_failed", "error"),
    "not run at the start: %s": _event("startup_run_refused", "reason"),
    "nothing is traced, see the extra otel in docs/how-to/install.md: %s": _event(
        "tracing_off", "error"
    ),
    "notice %s: %s delivered": _event("notice_delivered", "notice target"),
    "notice %s: %s failed: %s": _event("notice_failed", "notice target error"),
    "notice %s: %s not delivered yet: %s": _event("notice_put_off", "notice target error"),
    "notice %s: %s": _event("notice_error", "notice target"),
    "operation %s attempt %d ended: %s": _event("attempt_ended", "operation attempt state"),
    "operation %s attempt %d: its end is not recorded after %.0f s; its lease runs out": _event(
        "end_not_recorded", "operation attempt seconds"
    ),
    "operation %s attempt %d: a step does not end (%s); killing its process": _event(
        "step_killed", "operation attempt reason"
    ),
    "operation %s attempt %d: given back, its worker went away": _event(
        "operation_given_back", "operation attempt"
    ),
    "operation %s attempt %d: its interrupted step raised an error: %s": _event(
        "interrupted_step_raised", "operation attempt error"
    ),
    "operation %s attempt %d is not this agent's: %s": _event(
        "agent_refused", "operation attempt reason"
    ),
    "operation %s attempt %d: not started, %s": _event(
        "operation_not_started", "operation attempt reason"
    ),
    "operation %s could not be taken": _event("operation_not_taken", "operation"),
    "operation %s failed": _event("operation_failed", "operation"),
    "operation %s is left to the sweep: %s": _event("operation_left_to_sweep", "operation error"),
    "operation %s lost its worker: now %s": _event("operation_lost", "operation state"),
    "operation %s was left in doubt: now %s": _event("operation_in_doubt", "operation state"),
    "operation %s: another one of its action is starting; trying again": _event(
        "operation_start_repeated", "operation"
    ),
    "operation %s: its message was discarded: %s": _event("message_discarded", "operation reason"),
    "small app %s: its action %s was not created: %s": _event(
        "default_action_refused", "app action error"
    ),
    "stopped a broker that an earlier start left behind": _event("broker_left_behind"),
    "stopping when the last worker has left; a second signal stops it now": _event(
        "agent_stopping"
    ),
    "stopping; running operations are put back and continue at the next start": _event("stopping"),
    "the API is at http://%s:%d%s/api": _event("web_started", "host port path"),
    "cannot see whether the broker lost messages: %s": _event("broker_mark_unreadable", "error"),
    "no thread for a connection, which is closed: %s": _event("agent_without_thread", "error"),
    "no queue is bound to %s; start a worker for it": _event("queue_unbound", "exchange"),
    "the broker refuses what is sent to %s: the queue is full": _event("queue_full", "queue"),
    "the broker has no %s %s; start a worker for it": _event("queue_missing", "kind name"),
    "the broker lost its messages: %d operations are sent again": _event(
        "broker_lost_messages", "operations"
    ),
    "the broker refuses the mark that shows a loss of messages: %s": _event(
        "broker_mark_refused", "error"
    ),
    "the clock jumped by %+.1f s": _event("clock_jumped", "seconds"),
    "the clock was behind: %d actions begin again at their last change": _event(
        "clock_was_behind", "actions"
    ),
    "the clock went back by %s: all is decided again from %s on": _event(
        "clock_set_back", "by since"
    ),
    "the database does not answer: ended without waiting for it": _event("stop_not_awaited"),
    "the database did not respond for %.1f s": _event("database_slow", "seconds"),
    "the end of operation %s cannot be stored": _event("end_not_stored", "operation"),
    "the events of this tick are not decided; the next tick tries again": _event("events_failed"),
    "the ping was not answered: %s": _event("ping_failed", "error"),
    "the worker is gone; waiting for what its processes still run": _event("agent_worker_gone"),
    "this daemon was suspended for %.0f s": _event("daemon_suspended", "seconds"),
    "this machine's clock is %+.1f s off the database's, which alone decides; "
    "set it right (NTP)": _event("clock_skewed", "seconds"),
    "this machine's clock is right again": _event("clock_right_again"),
    "this machine's clock was set by %+.1f s": _event("machine_clock_set", "seconds"),
    "this look at the verdict failed; the next one tries again": _event("watch_failed"),
    "this tick failed; the next one catches up": _event("tick_failed"),
    "tick %s %s(%.0f ms)": _event("tick", "now figures duration_ms"),
    "ended operations were not counted; the next tick tries again": _event("counting_failed"),
    "%d actions are wound back to the clock": _event("actions_wound_back", "actions"),
    "unknown setting: %s": _event("setting_unknown", "setting"),
    "worker %s is ready for %s": _event("worker_started", "worker queues"),
}


def described(name: str, message: object, values: object) -> dict[str, Any]:
    """Return the event and the fields of a record of the logger `name`; nothing if it has none."""
    if name == STEP_LOGGER:
        return {"event": STEP_LINE}
    event = EVENTS.get(message) if isinstance(message, str) else None
    if event is None:
        return {}
    given = values if isinstance(values, tuple) else ()
    return {"event": event.name, **dict(zip(event.fields, given, strict=False))}
