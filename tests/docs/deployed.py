"""What docker-compose.yml and deploy/kubernetes start: each process of ours, and its checks."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
_SECRETS = re.compile("/run/secrets(/minutebook)?")
# Probes of Kubernetes that ask by HTTP have no command.
Check = tuple[str, ...]


@dataclass(frozen=True)
class Deployed:
    """One process: where it is written, its command, its settings and its health checks."""

    where: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]
    paths: tuple[str, ...] = ()

    def settings(self, secrets: Path) -> dict[str, str]:
        """Return its environment, the secrets in another folder."""
        return {key: _SECRETS.sub(str(secrets), value) for key, value in self.environment}


@cache
def entrypoint() -> tuple[str, ...]:
    (found,) = re.findall(r"^ENTRYPOINT (.+)$", (ROOT / "Dockerfile").read_text(), re.M)
    return tuple(json.loads(found))


def compose(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return docker-compose.yml as compose reads it with these variables."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{(\w+):-(.*?)\}", lambda one: environment.get(one[1], one[2]), text)
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def of_compose() -> Iterator[Deployed]:
    for name, service in compose({})["services"].items():
        if not service["image"].startswith("minutebook"):
            continue
        check = service.get("healthcheck", {}).get("test", ())[1:]
        yield Deployed(
            f"compose {name}",
            (*entrypoint(), *service["command"]),
            tuple(service["environment"].items()),
            (tuple(check),) if check else (),
        )


@cache
def manifests() -> list[dict[str, Any]]:
    """Return every document of deploy/kubernetes, the example's included."""
    files = sorted(KUBERNETES.glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in manifests():
        if one["kind"] in {"Deployment", "Job"}:
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def of_kubernetes() -> Iterator[Deployed]:
    for name, pod in pods():
        for one in pod["containers"]:
            if not one["image"].startswith("minutebook"):
                continue
            probes = [value for key, value in one.items() if key.endswith("Probe")]
            commands = [tuple(probe["exec"]["command"]) for probe in probes if "exec" in probe]
            paths = [probe["httpGet"]["path"] for probe in probes if "httpGet" in probe]
            yield Deployed(
                f"kubernetes {name}",
                (*entrypoint(), *one["args"]),
                tuple((pair["name"], pair["value"]) for pair in one["env"]),
                tuple(dict.fromkeys(commands)),
                tuple(dict.fromkeys(paths)),
            )


@cache
def everything() -> list[Deployed]:
    """Return all that is deployed, in the order of compose and of the manifests."""
    return [*of_compose(), *of_kubernetes()]
