"""What compose and Kubernetes start is ours; deploy/kubernetes is right by its schemas."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from processes.up import STOP_MARGIN_S
from runtime.config import load_settings, setting_paths
from runtime.sections.variables import variable_of
from tests.docs.command_lines import parse_minutebook
from tests.docs.deployed import KUBERNETES, Deployed, everything, manifests, pods

URLS = {
    "database_url": "postgresql://minutebook:p@postgres/minutebook",
    "owner_url": "postgresql://owner:p@postgres/minutebook",
    "broker_url": "redis://:p@redis:6379/0",
    "smtp_url": "smtp://mail:1025",
}


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
    done = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=True
    )
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


def test_a_stop_leaves_workers_the_time_to_give_back(tmp_path: Path) -> None:
    needed_s = load_settings(tmp_path, {}).worker.stop_grace_s + STOP_MARGIN_S

    for _, pod in pods():
        assert pod["terminationGracePeriodSeconds"] > needed_s


def test_no_secret_is_in_a_manifest() -> None:
    assert not [one for one in DOCUMENTS if one["kind"] == "Secret"]
    assert "://" not in json.dumps(DOCUMENTS)
