"""docker-compose.yml: right by the specification, and true to our commands and settings."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.docs.deployed import compose
from tests.docs.pages import text_of, tracked

ROOT = Path(__file__).parents[2]
PAGE = text_of("how-to/deploy/compose")


FILE = compose({})
FOLLOW = text_of("how-to/move-from-celery-beat/follow")
SCHEMA = json.loads((ROOT / "tests/docs/compose-spec.json").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if "SCHED_" in str(service)}


def test_the_file_follows_the_compose_specification() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(FILE)]
    assert errors == []


def test_the_page_s_worker_of_an_application_follows_the_specification_and_is_confined() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", FOLLOW, re.M | re.S)
    found = yaml.safe_load(text)
    service = found["services"]["shop-worker"]

    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)] == []
    assert service["environment"]["MINUTEBOOK_URL"] == "http://web:8265"
    assert {*service["networks"]} & {*SERVICES["web"]["networks"]}
    assert (service["read_only"], service["user"], "volumes" in service) == (True, "10001", False)


@pytest.mark.parametrize(("name", "server"), [("postgres", "PostgreSQL"), ("redis", "Redis")])
def test_its_servers_are_of_a_tested_release(name: str, server: str) -> None:
    page = (ROOT / "docs/how-to/operate/README.md").read_text()
    versions = page.partition("## Versions")[2]
    row = re.search(rf"^\| {server} \|(.*)\|.*\|$", versions, re.M)
    _, _, version = SERVICES[name]["image"].partition(":")

    assert row is not None
    tested = re.findall(r"[\d.]+", row[1])
    assert any(f"{one}.".startswith(f"{version}.") for one in tested)


def test_the_command_of_the_page_pins_each_image_by_its_digest(tmp_path: Path) -> None:
    (command,) = re.findall(r"^```sh\n(for image in .*?)^```", PAGE, re.M | re.S)
    digest = f"sha256:{'0a' * 32}"
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho {digest}\n")
    docker.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, env=path, check=True)

    pinned = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    services = compose(pinned)["services"]
    bases = {one["build"]["args"]["PYTHON_IMAGE"] for one in services.values() if "build" in one}
    images = {services[name]["image"] for name in ("postgres", "redis", "mail")}
    named = {SERVICES[name]["image"] for name in ("postgres", "redis", "mail")}
    assert bases == {f"python:3.11-slim@{digest}"}
    assert images == {f"{one}@{digest}" for one in named}


@pytest.mark.matrix
@pytest.mark.timeout(1800)
def test_the_image_is_built_by_its_own_commands(tmp_path: Path) -> None:
    places = {"/opt/minutebook": tmp_path / "opt", "/wheels": tmp_path / "wheels"}
    source = tmp_path / "src"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name, follow_symlinks=False)

    # The second stage takes the wheels of the first.
    for stage, most_mb in {"build-data": 400, "build": 160}.items():
        shutil.rmtree(tmp_path / "opt", ignore_errors=True)
        for line in _runs(stage):
            command = line.replace("python -m", f"{shlex.quote(sys.executable)} -m", 1)
            for place, here in places.items():
                command = command.replace(place, str(here))
            subprocess.run(["bash", "-euc", command], cwd=source, check=True)
        program = str(tmp_path / "opt/bin/minutebook")
        said = subprocess.run([program, "--version"], check=True, capture_output=True)
        installed = [one for one in (tmp_path / "opt").rglob("*") if one.is_file()]

        assert said.stdout.startswith(b"minutebook ")
        assert sum(one.stat().st_size for one in installed) < most_mb * 1e6


def _runs(stage: str) -> list[str]:
    text = re.split(r"^FROM ", DOCKERFILE, flags=re.M)
    found = next(one for one in text if one.split("\n")[0].endswith(f" AS {stage}"))
    return re.findall(r"^RUN (.+)$", found, re.M)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined_and_bounded(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"].split(":")[0] not in {"0", "root"}
    assert {"mem_limit", "cpus", "pids_limit", "tmpfs"} <= set(service)


def test_only_the_api_is_published_and_only_to_this_host() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert ports == {"web": ["127.0.0.1:8265:8265"]}
    assert FILE["networks"]["servers"] == {"internal": True}
    for name in ("postgres", "redis", "mail"):
        assert SERVICES[name]["networks"] == ["servers"]


def test_no_secret_is_in_the_environment() -> None:
    assert not re.search(
        r"PASSWORD(?!_FILE)|://", str([one.get("environment") for one in SERVICES.values()])
    )
    used = {secret for service in SERVICES.values() for secret in service.get("secrets", ())}
    assert used == set(FILE["secrets"])


def test_no_process_of_ours_has_the_password_of_the_superuser_or_of_another_account() -> None:
    mine = {name: set(service["secrets"]) for name, service in OURS.items()}

    assert mine.pop("migrate") == {"owner_url", "broker_url", "smtp_url"}
    assert all(secrets == {"database_url", "broker_url", "smtp_url"} for secrets in mine.values())
    assert "POSTGRES_USER" not in SERVICES["postgres"]["environment"]
