"""Random documents of actions."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.chaos.occurrences import span
from tests.ticks import MINUTE


def random_document(random: Random, name: str, now: datetime) -> dict[str, Any]:
    """Return a valid document of an action that is due soon and often."""
    when = random_when(random, now)
    return {
        "name": name,
        "operations": random_steps(random),
        "when": when,
        "policy": random_policy(random, when),
        "hooks": {"on_failure": [{"mail": "ops@example.com"}]},
    }


def random_when(random: Random, now: datetime) -> Any:
    """Return a rule: every minute, every few seconds, or some due dates.

    None counts from the end: what is due then follows from what ran, and is no expectation of it.
    """
    now = now.replace(microsecond=0)
    kind = random.choice(("cron", "interval", "interval", "old interval", "dates"))
    if kind == "cron":
        return {"cron_rule": "* * * * *", "timezone": "UTC"}
    if kind == "dates":
        dates = {
            now + timedelta(seconds=random.randint(2, 60)) for _ in range(random.randint(1, 12))
        }
        rules: list[dict[str, str]] = [{"due_date": at.isoformat()} for at in sorted(dates)]
        return rules + [{"cron_rule": "*/2 * * * *", "timezone": "UTC"}] * random.randint(0, 1)
    when: dict[str, Any] = {"every": random.choice(("PT5S", "PT5S", "PT7S", "PT10S"))}
    # Written, because the checker knows documents alone.
    if kind == "old interval":
        when["starting_at"] = (now - random.randint(1, 90) * MINUTE).isoformat()
    else:
        when["starting_at"] = (now + span(when["every"])).isoformat()
    if random.random() < 0.3:
        when["jitter"] = "PT4S"
    if random.random() < 0.2:
        when["tolerance"] = "PT1S"
    return when


def random_policy(random: Random, when: Any) -> dict[str, Any]:
    """Return a policy of short spans; no tolerance stands beside catch-up of all."""
    policy: dict[str, Any] = {
        "overlap": random.choice(("skip", "queue", "allow", "replace")),
        "catch_up": "latest" if "tolerance" in when else random.choice(("latest", "all")),
        "max_waiting": random.randint(1, 3),
        "time_limit": random.choice(("PT2S", "PT30S")),
        "retry": {"max_attempts": random.randint(1, 3), "backoff": ["PT1S", "PT2S"]},
    }
    if random.random() < 0.6:
        policy["look_back"] = "PT1M"
    return policy


def with_part(document: dict[str, Any], key: str, fresh: dict[str, Any]) -> dict[str, Any]:
    """Return a document with a part of another one; no tolerance stands beside catch-up of all."""
    made = {**document, key: fresh[key]}
    when, policy = made["when"], made.get("policy")
    catches_up = isinstance(policy, dict) and policy.get("catch_up") == "all"
    if catches_up and isinstance(when, dict):
        kept = {name: value for name, value in when.items() if name != "tolerance"}
        return {**made, "when": kept}
    return made


def random_steps(random: Random) -> dict[str, Any]:
    """Return one to three steps that pass, block, fail, stop on request or ignore it."""
    names = ("storm_first", "storm_second", "storm_once", "storm_heavy")
    chosen = [name for name in names if random.random() < 0.4] or [random.choice(names[:3])]
    return {name: random_parameters(random) for name in chosen}


def random_parameters(random: Random) -> dict[str, Any]:
    return {
        "ms": random.choice((0, 0, 0, 0, 200, 600, 1500, 4000)),
        "fail": random.choice((0, 0, 0, 0, 1, 2, 9)),
        "permanent": random.random() < 0.2,
        "ignores_interrupts": random.random() < 0.2,
        "heeds_stop": random.random() < 0.4,
    }
