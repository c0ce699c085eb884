"""What compose, Kubernetes and systemd start is ours; manifests and units are confined."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from processes.up import STOP_MARGIN_S
from runtime.config import load_settings, setting_paths
from runtime.sections.variables import variable_of
from scheduler.loop import LONGEST_WAIT_S
from tests.docs.command_lines import parse_minutebook
from tests.docs.deployed import KUBERNETES, ROOT, Deployed, compose, everything, manifests, pods
from tests.docs.pages import text_of

URLS = {
    "database_url": "postgresql://minutebook:p@postgres/minutebook",
    "owner_url": "postgresql://owner:p@postgres/minutebook",
    "broker_url": "redis://:p@redis:6379/0",
    "smtp_url": "smtp://mail:1025",
}


def ran(*command: str) -> "subprocess.CompletedProcess[str]":
    """Return what a command said, which was run in the checkout."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("one", everything(), ids=lambda one: one.where)
def test_each_command_check_and_variable_is_one_of_ours(one: Deployed, tmp_path: Path) -> None:
    for program, *arguments in (one.command, *one.checks):
        assert program == "minutebook"
        parse_minutebook(arguments)
    assert set(one.paths) <= {"/healthz", "/readyz", "/healthz/ticks"}
    assert set(dict(one.environment)) <= {variable_of(path) for path in setting_paths()}
    for secret, url in URLS.items():
        (tmp_path / secret).write_text(url)
    settings = load_settings(tmp_path, one.settings(tmp_path))
    assert settings.database_url.get_secret_value().startswith("postgresql:")


SCHEMAS = json.loads((Path(__file__).parent / "kubernetes-1.34.json").read_text(encoding="utf-8"))
KINDS = {
    (kind.get("group"), kind["version"], kind["kind"]): name
    for name, schema in SCHEMAS["$defs"].items()
    for kind in schema.get("x-kubernetes-group-version-kind", ())
    if name.startswith("io.k8s.api.")
}
DOCUMENTS = [one for one in manifests() if one["kind"] != "Kustomization"]
CONTAINERS = [
    pytest.param(pod, one, id=f"{name}-{one['name']}")
    for name, pod in pods()
    for one in pod["containers"]
]


def _faults(document: dict[str, Any]) -> list[str]:
    group, _, version = document["apiVersion"].rpartition("/")
    name = KINDS[group, version, document["kind"]]
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMAS["$defs"]}
    return [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(document)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one["metadata"]["name"])
def test_each_manifest_follows_the_schema_of_its_kind(document: dict[str, Any]) -> None:
    assert _faults(document) == []


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_every_manifest() -> None:
    done = ran("kubectl", "kustomize", str(KUBERNETES))
    built = list(yaml.safe_load_all(done.stdout))

    example = {
        one["metadata"]["name"]
        for one in yaml.safe_load_all((KUBERNETES / "follower.yaml").read_text())
    }
    named = {(one["kind"], one["metadata"]["name"]) for one in DOCUMENTS}
    assert {(one["kind"], one["metadata"]["name"]) for one in built} == {
        one for one in named if one[1] not in example
    }
    assert [fault for one in built for fault in _faults(one)] == []
    spaces = {one["metadata"].get("namespace") for one in built if one["kind"] != "Namespace"}
    assert spaces == {"minutebook"}


def test_the_kustomization_takes_all_but_the_example() -> None:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    there = {one.name for one in KUBERNETES.glob("*.yaml")}

    assert there - set(listed) == {"kustomization.yaml", "follower.yaml"}
    assert set(listed) <= there


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_each_container_is_confined_and_bounded(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}
    mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
    assert mounted <= {volume["name"] for volume in pod.get("volumes", ())}


def test_no_secret_is_in_a_manifest() -> None:
    assert not [one for one in DOCUMENTS if one["kind"] == "Secret"]
    assert "://" not in json.dumps(DOCUMENTS)


UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
PAGE = text_of("how-to/deploy/systemd")
PROGRAM = "/opt/minutebook/bin/minutebook"
INSTANCES = {"minutebook-worker@": "quick"}
# systemd's own figure, from 0 (confined) to 10; what is left is the network and unix sockets.
MOST_EXPOSED = 1.5

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def _lines(unit: Path, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit.read_text(encoding="utf-8"), re.M)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the units whose program is that of the tests, with one instance of each."""
    folder = tmp_path_factory.mktemp("units")
    program = str(Path(sys.executable).with_name("minutebook"))
    for unit in UNITS:
        name = unit.stem + INSTANCES.get(unit.stem, "") + ".service"
        (folder / name).write_text(unit.read_text().replace(PROGRAM, program))
    return folder


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_each_command_is_one_of_ours(unit: Path) -> None:
    (line,) = _lines(unit, "ExecStart")
    program, *arguments = line.replace("%i", "quick").split()

    assert program == PROGRAM
    parse_minutebook(arguments)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_each_variable_is_a_setting_and_each_url_a_credential(unit: Path, tmp_path: Path) -> None:
    environment = dict(line.split("=", 1) for line in _lines(unit, "Environment"))
    credentials = {line.split(":")[0] for line in _lines(unit, "LoadCredential")}

    assert set(environment) - {"SCHED_HOME"} <= {variable_of(path) for path in setting_paths()}
    named = {value.removeprefix("file:%d/") for value in environment.values() if "%d" in value}
    assert named == credentials == {"database_url", "broker_url", "smtp_url"}


def test_a_stop_leaves_the_time_that_processes_need(tmp_path: Path) -> None:
    needed_s = load_settings(tmp_path, {}).worker.stop_grace_s + STOP_MARGIN_S
    services = compose({})["services"].values()
    spans = [one["stop_grace_period"] for one in services if "SCHED_" in str(one)]
    of_services = [float(span[:-1]) * {"s": 1, "m": 60}[span[-1]] for span in spans]
    of_pods = [pod["terminationGracePeriodSeconds"] for _, pod in pods()]
    of_units, watched = (
        [float(one) for unit in UNITS for one in _lines(unit, key)]
        for key in ("TimeoutStopSec", "WatchdogSec")
    )

    assert min(*of_services, *of_pods, *of_units) > needed_s
    # Above what PostgreSQL may take to answer one statement, and many turns of the loop.
    assert min(watched) > 6 * LONGEST_WAIT_S


@needs_systemd
def test_systemd_finds_no_fault(installed: Path) -> None:
    units = sorted(str(one) for one in installed.iterdir())
    done = ran("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)

    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_each_unit_is_confined(installed: Path) -> None:
    units = sorted(str(one) for one in installed.iterdir())
    most = f"--threshold={MOST_EXPOSED * 10:.0f}"
    done = ran("systemd-analyze", "security", "--offline=true", "--no-pager", most, *units)

    exposed = re.findall(r"Overall exposure level for (\S+): ([\d.]+)", done.stdout)
    assert len(exposed) == len(units), done.stderr
    assert {name: level for name, level in exposed if float(level) > MOST_EXPOSED} == {}
    assert done.returncode == 0


@needs_systemd
@pytest.mark.skipif(os.getuid() != 0, reason="only root makes accounts")
def test_the_units_are_installed_by_the_commands_of_the_page(tmp_path: Path) -> None:
    block = re.search(r"^```text\n(install -d .*?)^```", PAGE, re.M | re.S)
    assert block is not None
    commands = block[1].replace(" /etc/", f" {tmp_path}/etc/")
    # Of a folder, not of this machine, whose systemd may not even run.
    for ours, there in {
        "systemd-sysusers": f"systemd-sysusers --root={tmp_path}",
        " && systemctl daemon-reload": "",
        "systemctl start minutebook-migrate\n": "",
        "systemctl enable --now": f"systemctl --root={tmp_path} enable",
    }.items():
        assert ours in commands
        commands = commands.replace(ours, there)
    for folder in ("sysusers.d", "systemd/system"):
        (tmp_path / "etc" / folder).mkdir(parents=True)

    done = ran("bash", "-euo", "pipefail", "-c", commands)

    assert done.returncode == 0, done.stderr
    assert re.search("^minutebook:", (tmp_path / "etc/passwd").read_text(), re.M)
    assert (tmp_path / "etc/minutebook").stat().st_mode & 0o777 == 0o700
    wanted = tmp_path / "etc/systemd/system/multi-user.target.wants"
    assert {one.name for one in wanted.iterdir()} == {
        "minutebook-daemon.service", "minutebook-web.service",
        *(f"minutebook-worker@{queue}.service" for queue in ("quick", "heavy", "default")),
    }  # fmt: skip
