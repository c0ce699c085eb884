"""`minutehand status`: who runs, what waits, what is broken."""

import socket
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from cli import preview
from cli.invocation import existing
from cli.output import instant, print_json, print_line
from models.sql import read_clock
from models.store import actions, notices, operations, ticks
from runtime.config import Settings
from runtime.database import reading
from scheduler.downtime import in_words, last_downtime

DAY = timedelta(days=1)


class Part(StrEnum):
    """What a health check may ask for."""

    DAEMON = "daemon"
    WORKER = "worker"


def status(
    context: typer.Context,
    check: Annotated[
        Part | None,
        typer.Option(help="Print nothing; exit 1 unless this host's daemon or worker is alive."),
    ] = None,
) -> None:
    """Show the daemon's last tick, workers, operations of the last day, and what is set aside."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        if check is not None:
            raise typer.Exit(0 if _is_alive(connection, invocation.settings, check) else 1)
        found = standing(connection, invocation.settings)
    if invocation.as_json:
        print_json(found)
    else:
        print_standing(found)


def print_standing(found: dict[str, Any]) -> None:
    """Print how the installation stands."""
    _print_daemon(found)
    print_downtime(found["downtime"])
    _print_workers(found)
    total, active = found["actions"]["total"], found["actions"]["active"]
    print_line(f"actions     {total}, {active} active, {found['actions']['unhealthy']} unhealthy")
    counts = ", ".join(f"{count} {state}" for state, count in found["operations"].items())
    print_line(f"last 24 h   {counts or 'no operations'}")
    if found["notices"]["failed"]:
        print_line(f"notices     {found['notices']['failed']} could not be delivered")
    for one in found["set_aside"]:
        print_line(f"SET ASIDE   {one['name']} ({one['uid']}): {one['reason']}")


def standing(connection: sa.Connection, settings: Settings) -> dict[str, Any]:
    """Return how the installation stands, as JSON."""
    now = read_clock(connection)
    tick = ticks.last(connection)
    total, active = actions.count(connection)
    seen_within = timedelta(seconds=settings.worker.lease_s)
    two_ticks = timedelta(seconds=2 * settings.scheduler.tick_seconds)
    return {
        "now": now,
        "daemon": None
        if tick is None
        else {
            "name": tick["daemon"],
            "last_tick_at": tick["finished_at"],
            "is_ticking": abs(now - tick["finished_at"]) <= two_ticks,
            "clock_skew_s": tick["report"].get("clock_skew_s", 0.0),
            "report": tick["report"],
        },
        "max_skew_s": settings.clock.max_skew_s,
        "clock_set_back": _clock_set_back(connection, now),
        "downtime": last_downtime(connection, now - DAY),
        "workers": [
            {
                key: row[key]
                for key in ("name", "queues", "seen_at", "skew_s", "follows", "step_failures")
            }
            for row in ticks.live_workers(connection, seen_within)
        ],
        "actions": {
            "total": total,
            "active": active,
            "unhealthy": _unhealthy(connection, settings),
        },
        "notices": {"failed": notices.failed_since(connection, now - DAY)},
        "operations": operations.counts_by_state(connection, now - DAY),
        "set_aside": [
            {"uid": row["uid"], "name": row["name"], "reason": row["set_aside"]}
            for row in actions.set_aside_actions(connection)
        ],
    }


def _unhealthy(connection: sa.Connection, settings: Settings) -> int:
    """Return how many actions are not well; `action list --unhealthy` shows them."""
    rows = actions.perhaps_unhealthy(connection, settings.alert.overdue)
    after = settings.alert.after
    return sum(not preview.health_in(row, after).is_healthy for row in rows)


def _clock_set_back(connection: sa.Connection, now: datetime) -> dict[str, Any] | None:
    """Return when, in the last day, the clock turned out to have been ahead, and by how much."""
    stored = ticks.json_fact(connection, ticks.CLOCK_SET_BACK)
    at, seconds = ticks.as_instant(stored.get("at")), stored.get("seconds")
    if at is None or not isinstance(seconds, int | float) or abs(now - at) >= DAY:
        return None
    return {"at": at, "seconds": seconds}


def _is_alive(connection: sa.Connection, settings: Settings, part: Part) -> bool:
    host = socket.gethostname()
    if part is Part.DAEMON:
        two_ticks = timedelta(seconds=2 * settings.scheduler.tick_seconds)
        return ticks.has_ticked(connection, f"{host}:", two_ticks)
    live = ticks.live_workers(connection, timedelta(seconds=settings.worker.lease_s))
    return any(f"@{host}:" in row["name"] for row in live)


def _print_daemon(found: dict[str, Any]) -> None:
    daemon = found["daemon"]
    if daemon is None:
        print_line("daemon      has never ticked; start it with `minutehand up`")
        return
    age = (found["now"] - daemon["last_tick_at"]).total_seconds()
    state = "ticks" if daemon["is_ticking"] else "DOES NOT TICK"
    print_line(f"daemon      {state}: {daemon['name']}, last tick {max(0.0, age):.0f} s ago")
    if "broker_error" in daemon["report"]:
        print_line(f"            broker_error: {daemon['report']['broker_error']}")
    _print_skew("the daemon's machine", daemon["clock_skew_s"])
    set_back = found["clock_set_back"]
    if set_back is not None:
        at, seconds = instant(set_back["at"]), set_back["seconds"]
        print_line(f"clock       was {seconds:.0f} s ahead until {at}; what it missed is withdrawn")


def print_downtime(told: dict[str, Any] | None) -> None:
    """Print what became of the last time without a tick, if there was one."""
    if told is not None:
        print_line(f"down        {in_words(told)}")


def _print_skew(whose: str, skew_s: float) -> None:
    if skew_s:
        word = "ahead of" if skew_s > 0 else "behind"
        print_line(f"clock       {whose} is {abs(skew_s):.1f} s {word} the database")


def _print_workers(found: dict[str, Any]) -> None:
    if not found["workers"]:
        print_line("workers     none")
    for row in found["workers"]:
        followed = "" if row["follows"] is None else f", follows {len(row['follows'])} tasks"
        print_line(f"worker      {row['name']} for {row['queues']}{followed}")
        if abs(row["skew_s"] or 0.0) > found["max_skew_s"]:
            _print_skew("its machine", row["skew_s"])
        for module, error in (row["step_failures"] or {}).items():
            print_line(f"            module {module} failed to import: {error}")
