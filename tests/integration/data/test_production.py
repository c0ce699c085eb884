"""Readers see one whole version of a small app, on both stores."""

from typing import Any

import pytest

from data.settings import Retention
from data.snapshots import production
from data.snapshots.production import OpenVersion, SnapshotDamaged, VersionGone, open_version
from data.steps import publish, refresh
from data.steps.publish import PublishParameters
from data.steps.refresh import RefreshParameters
from data.store import documents as app_documents
from data.views import rows
from models.document import NoParameters
from models.errors import NotFound, Refused
from tasks.steps import maintenance
from tests.integration.data.steps.conftest import Work
from views.installation import Installation

DOMAINS = {"a": {"source": {"file": "a.csv"}}, "b": {"source": {"file": "b.csv"}}}


@pytest.fixture
def shop(work: Work) -> Work:
    """Two domains that agree and a design, in their first version."""
    renewed(work, 1)
    return work


def renewed(work: Work, number: int, *, is_published: bool = True) -> None:
    """Refresh both domains, stage the design, and publish all of it."""
    work.apply(domains=DOMAINS, design={"start": {"version": number}})
    for name in DOMAINS:
        work.write(f"{name}.csv", f"version\n{number}\n{number}\n")
    refresh.run(work.context(RefreshParameters(force=True)))
    if is_published:
        publish.run(work.context(PublishParameters(data=True, design=True)))


def pruned(work: Work) -> None:
    """Let maintenance remove all but the newest snapshot beside those in use."""
    maintenance.run(work.context(NoParameters(), retention=Retention(snapshots=1)))


def opened(work: Work, **how: Any) -> OpenVersion:
    return open_version(work.engine, work.settings, "shop", **how)


def versions(version: OpenVersion) -> set[int]:
    """Return the numbers that all parts of a version say."""
    found = [row["version"] for name in version.domains for row in version.rows(name)]
    return {*found, version.design["start"]["version"]}


def test_production_is_what_was_published_and_staging_what_was_refreshed(shop: Work) -> None:
    renewed(shop, 2, is_published=False)

    with opened(shop) as shown, opened(shop, place="staging") as staged:
        assert (versions(shown), versions(staged)) == ({1}, {2})


def test_what_is_published_is_shown_in_one_answer(shop: Work) -> None:
    renewed(shop, 2, is_published=False)
    installation = Installation(shop.settings.home, "shop")
    installation.__dict__.update(settings=shop.settings, engine=shop.engine)

    shown = rows.published(installation)

    assert (shown.design, shown.permissions) == ({"start": {"version": 1}}, {})
    snapshots = {name: one.production for name, one in shop.domains().items()}
    assert shown.snapshots == {name: one.id for name, one in snapshots.items() if one}
    assert shown.snapshots.keys() == {"a", "b"}
    assert shown.published_at is not None


def test_an_open_version_outlives_publishes_and_prunes(shop: Work) -> None:
    with opened(shop) as version:
        for number in (2, 3, 4):
            renewed(shop, number)
            pruned(shop)

        assert versions(version) == {1}
        with pytest.raises(VersionGone, match="was removed meanwhile; open the version again"):
            version.rows("a")
    with opened(shop) as version:
        assert versions(version) == {4}


def test_a_file_that_goes_between_look_and_opening_lets_it_look_again(
    shop: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    real = production.look

    def look(*arguments: Any) -> production.Version:
        """Look, and let three versions and maintenance pass before anything is opened."""
        found = real(*arguments)
        looks.append(found)
        if len(looks) == 1:
            for number in (2, 3, 4):
                renewed(shop, number)
            pruned(shop)
        return found

    monkeypatch.setattr(production, "look", look)

    with opened(shop) as version:
        assert versions(version) == {4}
    assert len(looks) == 2


def test_a_damaged_snapshot_is_named(shop: Work) -> None:
    shown = shop.domains()["b"].production
    assert shown is not None
    (shop.settings.home / shown.path).unlink()

    with pytest.raises(SnapshotDamaged, match="the production snapshot of b is damaged"):
        opened(shop)
    with opened(shop, only=["a"]) as version:
        assert version.domains == ("a",)


def test_unknown_and_unpublished_names_are_refused(shop: Work) -> None:
    shop.apply(domains={**DOMAINS, "fresh": {"source": {"file": "f.csv"}}})

    with pytest.raises(NotFound, match=r'small app "shoop" .* did you mean "shop"'):
        open_version(shop.engine, shop.settings, "shoop")
    with pytest.raises(NotFound, match='domain "aa" is not a known domain'):
        opened(shop, only=["aa"])
    with pytest.raises(Refused, match='"fresh" has nothing in production yet; publish it first'):
        opened(shop, only=["fresh"])
    with opened(shop) as version, pytest.raises(NotFound, match="domain of this version"):
        version.rows("fresh")


def test_an_empty_domain_has_no_rows(shop: Work) -> None:
    shop.write("a.csv", "version\n")
    refresh.run(shop.context(RefreshParameters(force=True)))
    publish.run(shop.context(PublishParameters(data=True)))

    with opened(shop) as version:
        assert list(version.rows("a")) == []
        assert len(list(version.rows("b"))) == 2


def test_what_was_read_once_can_be_read_again(shop: Work) -> None:
    with opened(shop) as version:
        assert list(version.rows("a")) == list(version.rows("a"))


def test_reading_leaves_nothing_behind(shop: Work) -> None:
    with opened(shop) as version:
        next(version.rows("a"))

    left = shop.settings.home / "scratch" / "readers"
    assert not left.exists() or list(left.iterdir()) == []


def test_the_statements_of_a_look_see_one_instant(
    shop: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version is published between the first statement of a look and its last one."""
    real = app_documents.shown

    def shown(*arguments: Any) -> Any:
        renewed(shop, 2)
        return real(*arguments)

    before = shop.domains()["a"].production
    monkeypatch.setattr(app_documents, "shown", shown)

    found = production.look(shop.engine, "shop", "production")

    assert found.domains["a"] == before
    assert found.design["start"]["version"] == 1
