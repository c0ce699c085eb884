"""Manifests of Kubernetes: which have a schedule, and which of their keys an action leaves out."""

from collections.abc import Iterator, Mapping
from typing import Any

from moving.entries import CannotMove

CRON_JOB = "CronJob"
# Keys of manifests that another controller starts by the clock.
SCHEDULES = frozenset({"schedule", "schedules", "cron", "cronSpec"})
DEADLINE = "activeDeadlineSeconds"
# What is read of a pod and its container, reported elsewhere, or of no matter outside a cluster.
READ_OF_PODS = frozenset(
    {"containers", "initContainers", "restartPolicy", "volumes", DEADLINE, "imagePullSecrets"}
    | {"dnsPolicy", "schedulerName", "enableServiceLinks"}
)
# The time that a pod has to stop, unless it names another.
GRACE = ("terminationGracePeriodSeconds", 30)
READ_OF_CONTAINERS = frozenset(
    {"name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom"}
    | {"volumeMounts", "terminationMessagePath", "terminationMessagePolicy", "ports"}
)
READ_OF_CRON_JOBS = frozenset(
    {"schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend"}
    | {"jobTemplate", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}
)
READ_OF_JOBS = frozenset(
    {"template", "backoffLimit", DEADLINE, "completions", "parallelism"}
    | {"ttlSecondsAfterFinished", "selector", "manualSelector"}
)


def scheduled(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the manifests that have a schedule, which are CronJobs or of another controller."""
    if not isinstance(document, Mapping):
        return
    spec = document.get("spec")
    if document.get("kind") == CRON_JOB or (isinstance(spec, Mapping) and SCHEDULES & set(spec)):
        yield document
    elif isinstance(items := document.get("items"), list):
        for one in items:
            yield from scheduled(one)


def mapping(parent: Any, key: str) -> Mapping[str, Any]:
    """Return an object of a manifest, empty if it is absent; raises CannotMove for another."""
    found = parent.get(key) if isinstance(parent, Mapping) else None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise CannotMove(f"its {key} {str(found)[:60]!r} is not an object", "correct the manifest")
    return found


def unread(spec: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of a CronJob and of its job that change what runs when, and are left out."""
    for what, part, known in (("", spec, READ_OF_CRON_JOBS), (" job", job, READ_OF_JOBS)):
        found = [
            f"{name}{_shown(value)}"
            for name, value in part.items()
            if name not in known and value not in (None, {}, [], False, "NonIndexed")
        ]
        if found:
            yield f"left out of its{what or ' CronJob'}: {', '.join(found)}"


def left_out(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield where and as whom a pod would run, which an action does not say."""
    pod = mapping(mapping(job, "template"), "spec")
    containers = pod.get("containers")
    only = containers[0] if isinstance(containers, list) and containers else None
    container = only if isinstance(only, Mapping) else {}
    found = [
        f"{name}{_shown(value)}"
        for part, known in ((pod, READ_OF_PODS), (container, READ_OF_CONTAINERS))
        for name, value in part.items()
        if name not in known and value not in (None, {}, [], False) and (name, value) != GRACE
    ]
    if found:
        yield f"left out of its pod: {', '.join(map(str, found))}"


def _shown(value: object) -> str:
    if isinstance(value, Mapping) and all(
        not isinstance(one, Mapping | list) for one in value.values()
    ):
        return f" ({', '.join(f'{name} {one}' for name, one in value.items())[:100]})"
    return "" if isinstance(value, Mapping | list) else f" {str(value)[:100]}"
