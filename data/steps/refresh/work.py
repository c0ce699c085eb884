"""refresh: write a new snapshot of each changed domain to staging, and reuse the others.

Three phases, each over all domains: probe, download, import. A failed domain does not stop the
others. Probes and downloads run in parallel; user-defined readers, and imports, one by one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import TypeVar, cast
from uuid import uuid4

from data import snapshots as files
from data.failures import SourceFailed, Stopped
from data.fetch import sources
from data.fetch.sources import Fetched
from data.settings import settings_in
from data.snapshots import Place, Written
from data.steps.refresh import RefreshParameters
from data.steps.refresh.parallel import run_all
from data.steps.refresh.report import Report
from data.steps.refresh.room import Room
from data.store import snapshots as stored
from data.store.snapshots import Domain, MergedInto, Snapshot, Staged
from minutebook.error_text import text_of
from minutebook.readers import registered_readers
from minutebook.steps import StepFailed, StepResult
from models.hints import unknown_name
from models.sql import read_clock
from models.store.operations import heartbeat
from runtime.clock import monotonic
from runtime.database import reading
from tasks.bounded.limits import Watch
from tasks.step_context import WorkContext

T = TypeVar("T")
# The phase that changes data.
IMPORT = "import"


def run(context: WorkContext) -> StepResult:
    """Bring staging up to date; partial if some domains failed. Raises StepFailed if all did."""
    parameters = cast(RefreshParameters, context.parameters)
    with reading(context.engine) as connection:
        domains = stored.domains_of(connection, context.small_app.id)
        now = read_clock(connection)
    chosen = _chosen(parameters, domains)
    room = Room(context)
    refresh = _Refresh(context, parameters, Report(len(chosen)), room, now)
    try:
        room.check()
        changed = refresh.probe(chosen)
        context.announce(
            refresh.report.run_type(is_read=bool(changed)), [one.name for one in changed]
        )
        refresh.import_all(refresh.download(changed))
    except Stopped:
        refresh.report.stopped = True
    finally:
        refresh.discard()
    return refresh.report.result()


def _chosen(parameters: RefreshParameters, domains: Sequence[Domain]) -> list[Domain]:
    """Return the domains to refresh; a new domain is one that was never refreshed."""
    known = {domain.name: domain for domain in domains}
    takes_new = parameters.takes_new_domains
    if parameters.domains == "all":
        old = [domain for domain in domains if domain.refreshed_at is not None]
        # Before the first refresh all domains are new, and all are refreshed.
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


class _Probed(Enum):
    REUSED = 1
    CHANGED = 2
    # Unchanged, but the snapshot's file is missing.
    LOST = 3


class _Refresh:
    def __init__(
        self,
        context: WorkContext,
        parameters: RefreshParameters,
        report: Report,
        room: Room,
        now: datetime,
    ) -> None:
        self.context = context
        self.settings = settings_in(context.settings)
        self.parameters = parameters
        self.report = report
        self.room = room
        # By domain, also those that a stop leaves without an import.
        self._fetched: dict[str, Fetched] = {}
        # When the reading of each domain began, by the database's clock.
        self._begun_at: dict[str, datetime] = {}
        self._now, self._since_s = now, monotonic()

    def probe(self, domains: Sequence[Domain]) -> list[Domain]:
        """Return the domains that must be read; reuse the others."""
        if self.parameters.from_ == "downloaded":
            return list(domains)
        found: dict[str, _Probed] = {}

        def take(domain: Domain, probed: _Probed) -> None:
            found[domain.name] = probed
            self.report.is_bootstrap |= probed is _Probed.LOST
            if probed is _Probed.REUSED and domain.staging:
                self._confirm(domain.staging)

        self._in_parallel("probe", domains, self._probe, take)
        # Probes end in any order.
        self.report.reused.sort(key=[domain.name for domain in domains].index)
        changed = (_Probed.CHANGED, _Probed.LOST)
        return [domain for domain in domains if found.get(domain.name) in changed]

    def download(self, domains: Sequence[Domain]) -> list[tuple[Domain, Fetched]]:
        """Return the fetched domains with their data."""
        fetched: dict[str, Fetched] = {}

        def take(domain: Domain, data: Fetched) -> None:
            fetched[domain.name] = data

        is_reader = {domain.name: "reader" in domain.source for domain in domains}
        others = [domain for domain in domains if not is_reader[domain.name]]
        self._in_parallel("download", others, self._fetch, take)
        # Reports of user code are written to the database, which only this thread may do.
        for domain in domains:
            if is_reader[domain.name]:
                self._fetch_here(domain, take)
        return [(one, fetched[one.name]) for one in domains if one.name in fetched]

    def discard(self) -> None:
        """Remove the downloads that were not imported."""
        for data in self._fetched.values():
            data.discard()

    def import_all(self, fetched: Sequence[tuple[Domain, Fetched]]) -> None:
        """Write a snapshot of each domain and move staging to it."""
        for domain, data in fetched:
            write = partial(self._write, data)
            self._in_parallel(IMPORT, [domain], write, partial(self._take, data))
        self._progress(IMPORT, None)

    def _probe(self, domain: Domain, _watch: Watch) -> _Probed:
        source, staging = sources.source_of(domain.source), domain.staging
        self._begin(domain)
        if staging is None or self.parameters.force:
            return _Probed.CHANGED
        probed = sources.probe(source, self.settings)
        # Without validators a source may have changed.
        if not probed or staging.validators != probed:
            return _Probed.CHANGED
        is_there = files.is_there(self.settings, staging.path, staging.byte_count)
        return _Probed.REUSED if is_there else _Probed.LOST

    def _fetch(self, domain: Domain, watch: Watch) -> Fetched:
        source, settings = sources.source_of(domain.source), self.settings
        self._begin(domain)
        app = self.context.small_app.name
        kept = files.download_path(settings.home, app, domain.name, source.place)
        if self.parameters.from_ == "downloaded":
            return sources.fetch_again(source, kept, settings)
        # In the thread that fetched it: a stop may come before this step takes it.
        self._fetched[domain.name] = sources.fetch(source, kept, settings, watch, self.context)
        return self._fetched[domain.name]

    def _begin(self, domain: Domain) -> None:
        """Note that the domain is read from now on."""
        passed = timedelta(seconds=monotonic() - self._since_s)
        self._begun_at[domain.name] = self._now + passed

    def _write(self, fetched: Fetched, domain: Domain, watch: Watch) -> Written:
        place = Place(self.context.small_app.name, domain.name, uuid4())
        last = domain.staging.path if domain.staging else None
        data = replace(fetched.data, ended_before=self._ended_before(domain))
        try:
            return files.write(self.settings, place, data, watch, last)
        finally:
            fetched.keep()

    def _ended_before(self, domain: Domain) -> bool:
        staging = domain.staging
        if staging is None or self.parameters.force:
            return False
        is_same_source = staging.validators.get("source") == sources.source_of(domain.source).key
        return is_same_source and bool(staging.figures.get("ended"))

    def _take(self, fetched: Fetched, domain: Domain, written: Written) -> None:
        self.report.leave_out(domain.name, written.imported.bad_rows)
        staging = domain.staging
        if staging and self._is_same(staging, written):
            files.remove(self.settings, [written.path])
            self._confirm(staging, fetched.validators)
            return
        try:
            self.room.check(written.byte_count)
        except StepFailed:
            files.remove(self.settings, [written.path])
            raise
        snapshot = _snapshot(domain, written, fetched)
        is_merged = bool(fetched.data.rules.key)
        self._stage(snapshot, MergedInto(staging.id if staging else None) if is_merged else None)

    def _is_same(self, staging: Snapshot, written: Written) -> bool:
        # Otherwise a source without validators would fill the disk with copies.
        return (
            not self.parameters.force
            and staging.digest == written.imported.digest
            and files.is_there(self.settings, staging.path, staging.byte_count)
        )

    def _stage(self, snapshot: Snapshot, base: MergedInto | None) -> None:
        context = self.context
        with context.engine.begin() as connection:
            heartbeat.beat(connection, context.key)
            app, operation = context.small_app.id, context.operation_id
            begun_at = self._begun_at[snapshot.domain]
            staged = stored.stage(connection, app, snapshot, operation, begun_at, base)
            self._refuse_changed(staged, snapshot.domain)
        if staged is Staged.DONE:
            self.report.rewritten[snapshot.domain] = snapshot.row_count
        else:
            files.remove(settings_in(context.settings), [snapshot.path])
            self.report.overtaken.append(snapshot.domain)

    def _confirm(self, staging: Snapshot, validators: dict[str, str] | None = None) -> None:
        context = self.context
        with context.engine.begin() as connection:
            heartbeat.beat(connection, context.key)
            begun_at = self._begun_at[staging.domain]
            found = stored.confirm(connection, context.small_app.id, staging, begun_at, validators)
            self._refuse_changed(found, staging.domain)
        (self.report.reused if found is Staged.DONE else self.report.overtaken).append(
            staging.domain
        )

    def _refuse_changed(self, staged: Staged, domain: str) -> None:
        """Raise SourceFailed, so that nothing of this is stored, if the domain was changed."""
        if staged is Staged.CHANGED:
            raise SourceFailed(f"domain {domain} was changed or deleted meanwhile")

    def _in_parallel(
        self,
        phase: str,
        domains: Sequence[Domain],
        act: Callable[[Domain, Watch], T],
        take: Callable[[Domain, T], None],
    ) -> None:
        """Call `act` on each domain in a thread, and `take` with its result in this one."""
        known = {domain.name: domain for domain in domains}

        def done(name: str, future: Future[T]) -> None:
            self._isolated(known[name], lambda: take(known[name], future.result()))
            self._progress(phase, name)
            self.room.check()

        if self.context.should_stop():
            raise Stopped
        self._progress(phase, ", ".join(known) or None)
        acts = {name: partial(_guarded, act, known[name]) for name in known}
        run_all(acts, self.context.should_stop, partial(self._note, phase), done)
        if self.report.stopped:
            raise Stopped

    def _fetch_here(self, domain: Domain, take: Callable[[Domain, Fetched], None]) -> None:
        """Fetch one domain, and call `take` with its data, in this thread."""
        if self.context.should_stop():
            raise Stopped
        self._progress("download", domain.name)
        watch = Watch(self.context.should_stop, partial(self._note, "download", domain.name))
        self._isolated(domain, lambda: take(domain, self._fetch(domain, watch)))
        self.room.check()
        if self.report.stopped:
            raise Stopped

    def _isolated(self, domain: Domain, act: Callable[[], None]) -> None:
        try:
            act()
        except (Stopped, CancelledError):
            self.report.stopped = True
        except SourceFailed as error:
            self._fail(domain, str(error), permanent=error.permanent)
        except OSError as error:
            self._fail(domain, f"{error.strerror or error}", permanent=False)

    def _fail(self, domain: Domain, text: str, *, permanent: bool) -> None:
        text += self._missing_modules(domain)
        self.report.fail(domain.name, text, permanent=permanent)
        self.context.logger.warning("refresh of %s failed: %s", domain.name, text)

    def _missing_modules(self, domain: Domain) -> str:
        """Return why a reader may be unknown: modules that cannot be imported."""
        name = domain.source.get("reader")
        if name is None or name in registered_readers():
            return ""
        failed = self.context.failed_modules
        return "".join(f"; {module}: {error}" for module, error in failed.items())

    def _progress(self, phase: str, name: str | None) -> None:
        message = f"{phase} {name}" if name else None
        blocks = phase == IMPORT and name is not None
        counts = (self.report.done, self.report.total)
        self.context.progress(*counts, message, phase, blocking=blocks)

    def _note(self, phase: str, name: str, done: int, total: int | None) -> None:
        of = f" of {total:,}" if total else ""
        self.context.progress(message=f"{phase} {name}: {done:,}{of}", phase=phase)


def _guarded(act: Callable[[Domain, Watch], T], domain: Domain, watch: Watch) -> T:
    """Return the result of `act`; raise any unknown error as SourceFailed of the domain."""
    try:
        return act(domain, watch)
    except (SourceFailed, Stopped, OSError):
        raise
    except Exception as error:  # a failed domain must not stop the others
        raise SourceFailed(text_of(error)) from error


def _snapshot(domain: Domain, written: Written, fetched: Fetched) -> Snapshot:
    return Snapshot(
        id=written.id,
        domain=domain.name,
        path=written.path,
        row_count=written.imported.row_count,
        byte_count=written.byte_count,
        digest=written.imported.digest,
        validators=fetched.validators,
        figures=written.imported.figures,
    )
