"""refresh: a new snapshot of each domain into staging, or the one there when nothing changed.

Three phases, each over all domains: probe, download, import. A domain that fails stops no other.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from minutehand.steps import StepFailed, StepOutcome, StepResult
from models.parameters import RefreshParameters
from models.problems import unknown_name
from models.store import running
from models.store import snapshots as stored
from models.store.snapshots import Domain, Snapshot
from runtime.database import reading
from small_apps import freshness, sources
from small_apps import snapshots as files
from small_apps.failures import SourceFailed, Stopped
from small_apps.snapshots import Place, Written
from small_apps.sources import Fetched
from small_apps.watch import Watch
from tasks.context import WorkContext


def run(context: WorkContext) -> StepResult:
    """Bring staging up to date; some domains failed: partial. Raises StepFailed when all did."""
    parameters = cast(RefreshParameters, context.parameters)
    with reading(context.engine) as connection:
        domains = stored.domains_of(connection, context.small_app.id)
    chosen = _chosen(parameters, domains)
    refresh = _Refresh(context, parameters, len(chosen))
    try:
        changed = refresh.probe(chosen)
        refresh.import_all(refresh.download(changed))
    except Stopped:
        refresh.stopped = True
    return refresh.result()


def _chosen(parameters: RefreshParameters, domains: Sequence[Domain]) -> list[Domain]:
    """Return the domains to refresh; a new domain is one that was never refreshed."""
    known = {domain.name: domain for domain in domains}
    takes_new = parameters.takes_new_domains
    if parameters.domains == "all":
        old = [domain for domain in domains if domain.refreshed_at is not None]
        # Before the first refresh every domain is as old as the others.
        return list(domains) if takes_new or not old else old
    names = list(parameters.domains)
    for name in names:
        if name not in known:
            raise StepFailed(
                f"domain {name!r} {unknown_name('domain', name, known)}", permanent=True
            )
    if takes_new:
        names += [d.name for d in domains if d.refreshed_at is None and d.name not in names]
    return [known[name] for name in names]


@dataclass
class _Refresh:
    context: WorkContext
    parameters: RefreshParameters
    total: int
    rewritten: dict[str, int] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Any] = field(default_factory=dict)
    is_permanent: bool = True
    is_bootstrap: bool = False
    stopped: bool = False

    def probe(self, domains: Sequence[Domain]) -> list[Domain]:
        """Return those of `domains` that must be read; the others are reused."""
        if self.parameters.from_ == "downloaded":
            return list(domains)
        changed = []
        for domain in domains:
            self._progress("probe", domain.name)
            with self._isolated(domain):
                if not self._is_reused(domain):
                    changed.append(domain)
        return changed

    def download(self, domains: Sequence[Domain]) -> list[tuple[Domain, Fetched]]:
        """Return what came, of the domains that could be fetched."""
        fetched = []
        for domain in domains:
            self._progress("download", domain.name)
            with self._isolated(domain):
                fetched.append((domain, self._fetch(domain)))
        return fetched

    def import_all(self, fetched: Sequence[tuple[Domain, Fetched]]) -> None:
        """Write a snapshot of each and let staging point to it."""
        for domain, data in fetched:
            self._progress("import", domain.name)
            with self._isolated(domain):
                self._import(domain, data)
        self._progress("import", None)

    def _is_reused(self, domain: Domain) -> bool:
        source = sources.source_of(domain.source)
        staging = domain.staging
        if staging is None or self.parameters.force:
            return False
        probed = freshness.probe(source, self.context.settings)
        if not freshness.is_unchanged(staging.validators, probed):
            return False
        if not files.is_there(self.context.settings, staging.path, staging.byte_count):
            self.is_bootstrap = True
            return False
        self._confirm(staging)
        return True

    def _fetch(self, domain: Domain) -> Fetched:
        source, settings = sources.source_of(domain.source), self.context.settings
        kept = files.download_path(settings.home, self.context.small_app.name, domain.name)
        watch = self._watch("download", domain.name, "bytes")
        if self.parameters.from_ == "downloaded":
            return sources.fetch_again(source, kept, settings, watch)
        return sources.fetch(source, kept, settings, watch)

    def _import(self, domain: Domain, fetched: Fetched) -> None:
        settings, place = self.context.settings, self._place(domain)
        try:
            written = files.write(settings, place, fetched.data)
        finally:
            fetched.keep()
        faults = written.imported.faults
        if faults.count:
            self.left_out[domain.name] = faults.told()
        staging = domain.staging
        if staging and self._is_same(staging, written):
            files.remove(settings, [written.path])
            self._confirm(staging, fetched.validators)
            return
        self._stage(_snapshot(place, written, fetched))

    def _place(self, domain: Domain) -> Place:
        return Place(self.context.small_app.name, domain.name, uuid4())

    def _is_same(self, staging: Snapshot, written: Written) -> bool:
        # A source that cannot say whether it changed would else fill the disk with copies.
        return (
            not self.parameters.force
            and staging.digest == written.imported.digest
            and files.is_there(self.context.settings, staging.path, staging.byte_count)
        )

    def _stage(self, snapshot: Snapshot) -> None:
        context = self.context
        with context.engine.begin() as connection:
            running.beat(connection, context.operation_id, context.attempt)
            if not stored.stage(connection, context.small_app.id, snapshot, context.operation_id):
                raise SourceFailed(f"domain {snapshot.domain} was deleted meanwhile")
        self.rewritten[snapshot.domain] = snapshot.row_count

    def _confirm(self, staging: Snapshot, validators: dict[str, str] | None = None) -> None:
        context = self.context
        with context.engine.begin() as connection:
            running.beat(connection, context.operation_id, context.attempt)
            stored.confirm(connection, context.small_app.id, staging, validators)
        self.reused.append(staging.domain)

    @contextmanager
    def _isolated(self, domain: Domain) -> Iterator[None]:
        if self.context.should_stop():
            raise Stopped
        try:
            yield
        except SourceFailed as error:
            self._fail(domain, str(error), permanent=error.permanent)
        except OSError as error:
            self._fail(domain, f"{error.strerror or error}", permanent=False)

    def _fail(self, domain: Domain, text: str, *, permanent: bool) -> None:
        self.failed[domain.name] = text
        self.is_permanent &= permanent
        self.context.logger.warning("refresh of %s failed: %s", domain.name, text)

    @property
    def _done(self) -> int:
        return len(self.rewritten) + len(self.reused) + len(self.failed)

    def _progress(self, phase: str, name: str | None) -> None:
        message = f"{phase} {name}" if name else None
        self.context.progress(self._done, self.total, message, phase)

    def _watch(self, phase: str, name: str, unit: str) -> Watch:
        def progress(done: int, total: int | None) -> None:
            of = f" of {total:,}" if total else ""
            self.context.progress(message=f"{phase} {name}: {done:,}{of} {unit}", phase=phase)

        should_stop: Callable[[], bool] = self.context.should_stop
        return Watch(should_stop, progress)

    def result(self) -> StepResult:
        """Return the step's result. Raises StepFailed when every domain failed."""
        if self.failed and len(self.failed) == self.total:
            text = "; ".join(f"{name}: {text}" for name, text in self.failed.items())
            raise StepFailed(text, permanent=self.is_permanent)
        is_partial = bool(self.failed or self.left_out) or self.stopped
        return StepResult(
            message=self._sentence(),
            outcome=StepOutcome.PARTIAL if is_partial else StepOutcome.SUCCESS,
            details=self._details(),
        )

    def _sentence(self) -> str:
        parts = []
        if self.rewritten:
            shown = (f"{name} ({rows:,} rows)" for name, rows in self.rewritten.items())
            parts.append(f"rewrote {', '.join(shown)}")
        if self.reused:
            parts.append(f"reused {', '.join(self.reused)}")
        parts += [
            f"{told['rows']:,} rows of {name} left out" for name, told in self.left_out.items()
        ]
        parts += [f"{name} failed: {text}" for name, text in self.failed.items()]
        if self.stopped:
            parts.append(f"stopped after {self._done} of {self.total}")
        return "; ".join(parts) or "the small app has no domains"

    def _details(self) -> dict[str, Any]:
        kind = "complete" if self.rewritten else "cached"
        return {
            "run_type": "bootstrap" if self.is_bootstrap else kind,
            "rewritten": list(self.rewritten),
            "reused": self.reused,
            "rows": self.rewritten,
            "failed": self.failed,
            "left_out": self.left_out,
        }


def _snapshot(place: Place, written: Written, fetched: Fetched) -> Snapshot:
    return Snapshot(
        id=place.id,
        domain=place.domain,
        path=written.path,
        row_count=written.imported.row_count,
        byte_count=written.byte_count,
        digest=written.imported.digest,
        validators=fetched.validators,
        figures=written.imported.figures,
    )
