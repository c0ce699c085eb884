"""CronJobs of Kubernetes as entries."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from models.action.document import ParseContext
from models.errors import InvalidDocument
from models.errors import Refused as RefusedCommand
from moving.entries import Entry, Refused
from moving.kubernetes import DEADLINE_DIFFERS, entries_of, rule_of
from moving.outcomes import Outcome, outcomes
from runtime.documents import read_yaml_documents
from tasks.built_in import built_in_steps
from views.files import read_manifests

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None, commands=None)
BACKUP = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: shop}
spec:
  schedule: "30 2 * * 1-5"
  timeZone: Europe/Paris
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  suspend: true
  jobTemplate:
    spec:
      activeDeadlineSeconds: 600
      backoffLimit: 2
      template:
        spec:
          containers:
          - name: it
            image: shop:7
            workingDir: /srv
            command: ["./backup.sh"]
            args: ["--to", "$(PLACE)"]
            env: [{name: PLACE, value: /backups}, {name: TOKEN, valueFrom: {secretKeyRef: {}}}]
"""
LIST = f"""
apiVersion: v1
kind: Service
---
apiVersion: v1
kind: List
items:
- {BACKUP.strip().replace(chr(10), chr(10) + "  ")}
"""


def found(text: str) -> Entry | Refused:
    (one,) = entries_of(read_yaml_documents(text), "UTC", "jobs.yaml")
    return one


def entry(text: str = BACKUP, **changes: str) -> Entry:
    for old, new in changes.items():
        text = text.replace({"schedule": '"30 2 * * 1-5"'}.get(old, old), new)
    made = found(text)
    assert isinstance(made, Entry), made
    return made


def moved(made: Entry) -> Outcome:
    (one,) = outcomes([made], CONTEXT)
    return one


@pytest.mark.parametrize(
    ("added", "remark"),
    [
        ("serviceAccountName: reports", "serviceAccountName reports"),
        ("serviceAccount: reports", "serviceAccount reports"),
        ("nodeSelector: {disk: ssd}", "nodeSelector (disk ssd)"),
        ("nodeName: node-7", "nodeName node-7"),
        ("terminationGracePeriodSeconds: 300", "terminationGracePeriodSeconds 300"),
        (
            "securityContext: {runAsUser: 33, fsGroup: 33}",
            "securityContext (runAsUser 33, fsGroup 33)",
        ),
        ("tolerations: [{key: gpu}]", "tolerations"),
        ("affinity: {nodeAffinity: {x: {}}}", "affinity"),
        ("priorityClassName: high", "priorityClassName high"),
        ("hostNetwork: true", "hostNetwork True"),
        ("hostAliases: [{ip: 10.0.0.1}]", "hostAliases"),
        ("runtimeClassName: gvisor", "runtimeClassName gvisor"),
    ],
)
def test_where_and_as_whom_a_pod_runs_is_reported(added: str, remark: str) -> None:
    text = BACKUP.replace("          containers:", f"          {added}\n          containers:")

    assert f"left out of its pod: {remark}" in entry(text).remarks


@pytest.mark.parametrize(
    ("added", "remark"),
    [
        ("securityContext: {runAsUser: 33}", "securityContext (runAsUser 33)"),
        ("resources: {limits: {memory: 1Gi}}", "resources"),
        ("livenessProbe: {exec: {command: [a]}}", "livenessProbe"),
        ("stdin: true", "stdin True"),
    ],
)
def test_what_a_container_has_besides_is_reported(added: str, remark: str) -> None:
    text = BACKUP.replace(
        "            image: shop:7", f"            image: shop:7\n            {added}"
    )

    assert f"left out of its pod: {remark}" in entry(text).remarks


@pytest.mark.parametrize(
    ("written", "is_active"),
    [
        ("true", False),
        ('"true"', False),
        ('"True"', False),
        ("false", True),
        ('"false"', True),
        ("null", True),
        # As Kubernetes reads YAML, by its version 1.1.
        ("yes", False),
        ("On", False),
        ("off", True),
    ],
)
def test_a_suspended_job_is_paused_however_it_says_so(written: str, is_active: bool) -> None:
    assert entry(BACKUP.replace("suspend: true", f"suspend: {written}")).active is is_active


def test_one_bad_manifest_does_not_stop_the_others() -> None:
    bad = BACKUP.replace("metadata: {name: backup, namespace: shop}", "metadata: [1]")
    odd = BACKUP.replace("suspend: true", "suspend: maybe")
    made = list(entries_of(read_yaml_documents(f"{bad}\n---\n{odd}\n---\n{BACKUP}"), "UTC", "x"))

    assert [one.name for one in made] == ["CronJob 1", "shop/backup", "shop/backup"]
    assert [type(one) for one in made] == [Entry, Refused, Entry]


def test_a_cron_job_becomes_an_action_with_its_command() -> None:
    made = entry()

    command = {
        "run": ["./backup.sh", "--to", "/backups"], "cwd": "/srv", "env": {"PLACE": "/backups"},
    }  # fmt: skip
    assert made.document == {
        "name": "shop/backup",
        "owner": "import:kubernetes",
        "active": False,
        "operations": {"command": command},
        "when": {"cron_rule": "30 2 * * 1-5", "timezone": "Europe/Paris"},
        "policy": {
            "overlap": "skip",
            "look_back": "PT3M20S",
            "time_limit": "PT10M",
            "retry": {"max_attempts": 3, "backoff": ["PT10S", "PT20S"]},
        },
    }
    assert made.remarks == (
        "it runs on a worker's machine, not in the image shop:7",
        "its variable TOKEN is left out: its value is not in the manifest",
        "Kubernetes tries again after any failure, the action only after exit code 75",
        DEADLINE_DIFFERS,
    )


def test_a_job_that_is_not_tried_again_differs_in_no_retry() -> None:
    made = entry(BACKUP.replace("backoffLimit: 2", "backoffLimit: 0"))

    assert "retry" not in made.policy
    assert not any("tries again" in one for one in made.remarks)
    assert DEADLINE_DIFFERS not in made.remarks


@pytest.mark.parametrize(
    ("restart", "of_job", "is_exact"),
    [
        pytest.param("Never", "", True, id="a_pod_is_an_attempt"),
        pytest.param("OnFailure", "", False, id="a_pod_has_all_attempts"),
        pytest.param("Never", "activeDeadlineSeconds: 1800", False, id="the_job_has_one_too"),
    ],
)
def test_the_deadline_of_a_pod_is_that_of_an_attempt(
    restart: str, of_job: str, is_exact: bool
) -> None:
    text = BACKUP.replace("activeDeadlineSeconds: 600", of_job)
    of_pod = f"activeDeadlineSeconds: 300\n          restartPolicy: {restart}\n"
    made = entry(text.replace("containers:", f"{of_pod}          containers:"))

    assert made.policy["time_limit"] == "PT5M"
    assert (DEADLINE_DIFFERS not in made.remarks) is is_exact


def test_a_deadline_beyond_the_longest_time_limit_differs() -> None:
    made = entry(BACKUP.replace("Seconds: 600", "Seconds: 604801"))

    assert made.policy["time_limit"] == "P7D"
    assert "its activeDeadlineSeconds 604801 is cut to P7D, the longest time limit" in made.remarks


def test_the_action_can_be_stored() -> None:
    made = moved(entry())

    assert (made.kind, made.document) == ("differs", entry().document)


def test_several_documents_and_lists_are_read() -> None:
    assert entry(LIST).document == entry().document


def test_what_a_manifest_leaves_out_is_what_kubernetes_does() -> None:
    lines = [
        line
        for line in BACKUP.splitlines()
        if not any(
            key in line
            for key in ("Deadline", "timeZone", "concurrency", "suspend", "backoffLimit")
        )
    ]
    made = entry("\n".join(lines))

    assert (made.active, made.when) == (True, {"cron_rule": "30 2 * * 1-5", "timezone": "UTC"})
    policy = dict(made.policy)
    assert policy.pop("retry")["max_attempts"] == 7
    assert policy == {"overlap": "allow", "look_back": "P366D", "time_limit": "P7D"}


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ("0 9 * * MON-FRI", "0 9 * * 1-5"),
        ("*/15 * ? * *", "*/15 * * * *"),
        ("5/20 0-23 1 jan 0", "5,25,45 * 1 1 0"),
        # Either day is enough: a step does not leave the decision to the weekday.
        ("0 9 */10 * 1", "0 9 1,11,21,31 * 1"),
        ("0 9 */1 * 1", "0 9 * * 1"),
    ],
)
def test_a_schedule_has_the_days_and_times_of_its_rule(schedule: str, rule: str) -> None:
    assert rule_of(schedule) == rule


@pytest.mark.parametrize(
    ("schedule", "when"),
    [
        ('"@daily"', {"cron_rule": "0 0 * * *", "timezone": "Europe/Paris"}),
        ('"CRON_TZ=Asia/Tokyo 0 9 * * *"', {"cron_rule": "0 9 * * *", "timezone": "Asia/Tokyo"}),
        ('"@every 1h30m"', {"every": "PT1H30M"}),
    ],
)
def test_other_ways_to_write_a_schedule(schedule: str, when: object) -> None:
    assert entry(schedule=schedule).when == when


def test_instants_that_differ_where_the_clocks_change_are_counted() -> None:
    night = moved(entry(schedule='"30 2 * * *"')).difference
    day = moved(entry(schedule='"30 7 * * *"')).difference

    # Kubernetes skips the night in March, and runs twice in that of October.
    assert night is not None
    assert (night.count, night.total) == (4, 730)
    assert day is not None
    assert day.count == 0


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("schedule", '"0 9 * *"', "has 4 fields, not 5"),
        ("schedule", '"0 9 * * 7"', "is not within 0 to 6"),
        ("schedule", '"0 9 L * *"', "its day of month 'l' is not part"),
        ("Europe/Paris", "Europe/Pariss", "'Europe/Pariss'"),
        ("Forbid", "Never", "concurrencyPolicy 'Never' is unknown"),
        ("backoffLimit: 2", "backoffLimit: -1", "backoffLimit '-1' is not a number"),
        ("backoffLimit: 2", "parallelism: 2", "its parallelism is 2"),
        ('            command: ["./backup.sh"]\n', "", "entry point of the image 'shop:7'"),
        ("env: [", "env: 5\n            ports: [", "its env '5' is not a list"),
        ("$(PLACE)", "$(PLACE)" * 20_000, "is longer than 100,000 characters"),
        ("$(PLACE)", "$(TOKEN)", "needs the variable TOKEN"),
        (
            "          - name: it\n",
            "          - {}\n          - name: it\n",
            "not have exactly one container",
        ),
        ("spec:\n  schedule", "spec: 5\nother:\n  schedule", "its spec '5' is not an object"),
    ],
)
def test_what_no_action_can_say_is_refused(old: str, new: str, why: str) -> None:
    text = BACKUP.replace({"schedule": '"30 2 * * 1-5"'}.get(old, old), new)
    made = found(text)

    assert isinstance(made, Refused), made
    assert why in made.why
    assert made.instead


@pytest.mark.parametrize("text", ["", "kind: Pod", "- 1", "a: &a [1]\nb: *a"])
def test_a_file_without_cron_jobs_is_refused(text: str) -> None:
    with pytest.raises((RefusedCommand, ValueError), match=r"no CronJob|anchor"):
        found(text)


def test_two_dollar_signs_stand_for_one() -> None:
    made = entry(BACKUP.replace('"--to"', '"a$$ $$(PLACE) $5"'))

    assert made.operations["command"]["run"][1] == "a$ $(PLACE) $5"


SPEC = '"0 3 * * *"\n  jobTemplate: {spec: {template: {spec: {containers: [{command: [a]}]}}}}\n'
JOB = "kind: CronJob\nspec:\n  schedule: "


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: CronJob\nmetadata:\n  name: {{ .Release.Name }}\n", id="name"),
        pytest.param("{{- if .Values.on }}\nkind: CronJob\n{{- end }}\n", id="condition"),
        pytest.param("kind: CronJob\nspec:\n  schedule: {{ .Values.at | quote }}\n", id="quoted"),
        pytest.param("kind: CronJob\n{{ include 'x' . | nindent 2 }}\n", id="include"),
        pytest.param("{{/* a comment */}}\n---\nkind: CronJob\n", id="comment"),
        pytest.param("{{ range .Values.jobs }}\n---\nkind: CronJob\n{{ end }}\n", id="range"),
        pytest.param("kind: CronJob\nspec: {{ toYaml .Values.spec }}\n", id="whole"),
        pytest.param("kind: CronJob\n{{- with .Values.x }}\na: 1\n{{- end }}\n", id="with"),
        pytest.param("kind: {{ .Values.kind }}\nspec:\n", id="kind"),
        pytest.param('kind: CronJob\nlabels:\n{{ template "x" }}\n', id="template"),
    ],
)
def test_a_template_of_helm_is_named_as_one(tmp_path: Path, text: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)

    with pytest.raises(InvalidDocument, match="is a template of Helm; render it first: helm temp"):
        read_manifests(file, 10_000)


def test_a_schedule_that_is_a_variable_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"{JOB}{SPEC.replace('0 3 * * *', '{{ .Values.schedule }}')}")

    (made,) = entries_of(read_manifests(file, 10_000), "UTC", "job.yaml")

    assert isinstance(made, Refused)
    assert made.instead == "render the chart first: helm template CHART > rendered.yaml"


def test_braces_in_a_command_are_no_template(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"{JOB}{SPEC.replace('[a]', '[kubectl, get, ' + repr('{{.name}}') + ']')}")

    (made,) = entries_of(read_manifests(file, 10_000), "UTC", "job.yaml")

    assert isinstance(made, Entry)


@pytest.mark.parametrize(
    ("added", "remark"),
    [
        pytest.param("podFailurePolicy: {rules: [1]}", "its job: podFailurePolicy", id="failures"),
        pytest.param("completionMode: Indexed", "its job: completionMode Indexed", id="indexed"),
        pytest.param("suspend: true", "its job: suspend True", id="suspended"),
        pytest.param("backoffLimitPerIndex: 1", "its job: backoffLimitPerIndex 1", id="each"),
        pytest.param("maxFailedIndexes: 3", "its job: maxFailedIndexes 3", id="most"),
        pytest.param("podReplacementPolicy: Failed", "podReplacementPolicy Failed", id="replaced"),
        pytest.param("managedBy: kueue.x-k8s.io/x", "managedBy kueue.x-k8s.io/x", id="managed"),
        pytest.param("successPolicy: {rules: [1]}", "its job: successPolicy", id="success"),
        pytest.param("ttlSecondsAfterFinished: 60", "", id="kept_for"),
        pytest.param("completionMode: NonIndexed", "", id="not_indexed"),
        pytest.param("suspend: false", "", id="not_suspended"),
    ],
)
def test_what_a_job_has_besides_is_reported(added: str, remark: str) -> None:
    made = found(
        BACKUP.replace("      backoffLimit: 2\n", f"      backoffLimit: 2\n      {added}\n")
    )

    assert isinstance(made, Entry)
    said = [one for one in made.remarks if one.startswith("left out of its job")]
    assert len(said) == bool(remark)
    assert remark in "".join(said)


@pytest.mark.parametrize(
    "other",
    [
        "{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {schedule: '0 0 * * *'}}",
        "{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {schedules: ['0 0 * * *']}}",
        "{apiVersion: kueue.x-k8s.io/v1, kind: ScheduledJob, spec: {schedule: '@daily'}}",
        "{apiVersion: velero.io/v1, kind: Schedule, spec: {schedule: 0 7 * * *}}",
        "{apiVersion: k8up.io/v1, kind: Backup, spec: {schedule: '@daily-random'}}",
        "{apiVersion: postgresql.cnpg.io/v1, kind: ScheduledBackup, spec: {schedule: 0 0 0 * * *}}",
        "{kind: ScheduledSparkApplication, spec: {schedule: '@every 5m'}}",
        "{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, spec: {schedule: 0 0 * * *}}",
        "{kind: List, items: [{kind: CronWorkflow, spec: {schedule: 0 0 * * *}}]}",
        "{kind: CronTab, spec: {cronSpec: 0 0 * * *}}",
    ],
)
def test_a_schedule_of_another_controller_does_not_vanish(other: str) -> None:
    documents = read_yaml_documents(f"{BACKUP}\n---\n{other}\n")

    backup, made = entries_of(documents, "UTC", "jobs.yaml")

    assert isinstance(backup, Entry)
    assert isinstance(made, Refused)
    assert "which another controller runs" in made.why


@pytest.mark.parametrize(("seconds", "is_reported"), [("5", True), ("59", True), ("60", False)])
def test_a_deadline_that_is_too_short_for_a_look_back_is_reported(
    seconds: str, is_reported: bool
) -> None:
    made = entry(
        BACKUP.replace("startingDeadlineSeconds: 200", f"startingDeadlineSeconds: {seconds}")
    )

    assert made.policy["look_back"] == "PT1M"
    remark = f"its startingDeadlineSeconds {seconds} becomes PT1M, the shortest look_back"
    assert (remark in made.remarks) == is_reported
