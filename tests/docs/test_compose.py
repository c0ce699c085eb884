"""docker-compose.yml: right by the specification, and true to our commands and settings."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.main import get_command

from broker.names import DEFAULT, HEAVY, QUICK
from cli.main import cli
from cli.tree import hoisted
from processes import daemon
from processes.up import STOP_MARGIN_S
from runtime.config import load_settings, setting_paths, variable_of

ROOT = Path(__file__).parents[2]
FILE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SCHEMA = json.loads((ROOT / "tests/docs/compose-spec.json").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if "SCHED_" in str(service)}
LASTING = {name: service for name, service in SERVICES.items() if service["restart"] != "no"}


def _command(service: dict[str, Any]) -> list[str]:
    entrypoint = service.get("entrypoint") or json.loads(
        re.findall(r"^ENTRYPOINT (.+)$", DOCKERFILE, re.M)[0]
    )
    return [*entrypoint, *service.get("command", [])]


def _seconds(span: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|m)", span).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "m": 60}[unit]


def _parse_minutehand(arguments: list[str]) -> None:
    """Parse a command line of ours; raises for an unknown command, option or value."""
    command: Any = get_command(cli)
    context = command.make_context("minutehand", hoisted(arguments))
    rest = [*context._protected_args, *context.args]
    while rest:
        name, *rest = rest
        command = command.commands[name]
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "commands"):
            return
        rest = [*context._protected_args, *context.args]


def test_the_file_follows_the_compose_specification() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(FILE)]
    assert errors == []


def test_two_daemons_and_a_worker_for_each_queue_are_there() -> None:
    commands = [_command(service) for service in OURS.values()]

    assert commands.count(["python", "scheduler_server.py"]) == 2
    assert {QUICK, HEAVY, DEFAULT} == {command[-1] for command in commands if "worker" in command}
    assert {"postgres", "redis", "migrate"} <= set(SERVICES)


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_of_ours(name: str) -> None:
    program, *arguments = _command(OURS[name])

    if program == "minutehand":
        _parse_minutehand(arguments)
    else:
        assert (program, arguments[0]) == ("python", "scheduler_server.py")
        daemon._parser().parse_args(arguments[1:])


@pytest.mark.parametrize("name", SERVICES)
def test_each_image_is_pinned_by_a_tag(name: str) -> None:
    assert re.fullmatch(r"[a-z]+:\d+(\.\d+)*", SERVICES[name]["image"])


def test_the_image_of_the_dockerfile_is_pinned_and_the_user_is_not_root() -> None:
    assert re.findall(r"^FROM (.+)$", DOCKERFILE, re.M) == ["python:3.11-slim"]
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.M) == ["minutehand"]
    assert "--require-hashes -r requirements.lock" in DOCKERFILE


@pytest.mark.parametrize("name", OURS)
def test_each_variable_is_a_setting_with_a_valid_value(name: str, tmp_path: Path) -> None:
    environment = OURS[name]["environment"]
    known = {variable_of(path) for path in setting_paths()}
    values = {key: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value) for key, value in environment.items()}

    assert set(environment) <= known
    assert load_settings(tmp_path, values).database_url.get_secret_value().startswith("postgresql:")


@pytest.mark.parametrize("name", LASTING)
def test_each_lasting_service_restarts_and_tells_its_health(name: str) -> None:
    service = LASTING[name]

    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


@pytest.mark.parametrize("name", [name for name in LASTING if name in OURS])
def test_each_health_check_asks_our_own_command(name: str) -> None:
    kind, program, *arguments = OURS[name]["healthcheck"]["test"]

    assert (kind, program) == ("CMD", "minutehand")
    _parse_minutehand(arguments)


@pytest.mark.parametrize("name", OURS)
def test_a_stop_leaves_workers_the_time_to_give_back(name: str, tmp_path: Path) -> None:
    needed_s = load_settings(tmp_path, {}).worker.stop_grace_s + STOP_MARGIN_S

    assert _seconds(OURS[name]["stop_grace_period"]) > needed_s


def test_the_broker_keeps_its_messages() -> None:
    command = " ".join(SERVICES["redis"]["command"])

    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_nothing_starts_before_the_schema_is_there() -> None:
    waiting = {name: service for name, service in OURS.items() if name != "migrate"}

    for service in waiting.values():
        assert service["depends_on"] == {
            "postgres": {"condition": "service_healthy"},
            "redis": {"condition": "service_healthy"},
            "migrate": {"condition": "service_completed_successfully"},
        }


def test_every_named_volume_is_declared() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service["volumes"]}

    assert set(FILE["volumes"]) == used
