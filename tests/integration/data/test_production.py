"""Readers see one whole version of a small app, on both stores."""

from typing import Any

import pytest

from data.services import rows
from data.settings import Retention
from data.snapshots import production
from data.snapshots.production import SnapshotDamaged
from data.store import documents as app_documents
from models.document import NoParameters
from models.errors import NotFound, Refused
from tasks.steps import maintenance
from tests.factories import installation_on
from tests.integration.data.steps.conftest import Work, from_files

DOMAINS = from_files("a", "b")


@pytest.fixture
def shop(work: Work) -> Work:
    """Two domains that agree and a design, in their first version."""
    renewed(work, 1)
    return work


def renewed(work: Work, number: int, *, is_published: bool = True) -> None:
    work.apply(domains=DOMAINS, design={"start": {"version": number}})
    for name in DOMAINS:
        work.write(f"{name}.csv", f"version\n{number}\n{number}\n")
    work.refresh(force=True)
    if is_published:
        work.publish(data=True, design=True)


def pruned(work: Work) -> None:
    """Let maintenance remove all but the newest snapshot beside those in use."""
    maintenance.run(work.context(NoParameters(), retention=Retention(snapshots=1)))


def read(work: Work, domain: str, app: str = "shop") -> list[Any]:
    with production.open_rows(work.engine, work.settings, app, domain) as rows:
        return list(rows)


def versions(work: Work) -> set[int]:
    found = [row["version"] for name in DOMAINS for row in read(work, name)]
    design = production.look(work.engine, "shop", "production").design
    return {*found, design["start"]["version"]}


def test_what_is_published_is_shown_in_one_answer(shop: Work) -> None:
    renewed(shop, 2, is_published=False)

    shown = rows.published(installation_on(shop.engine, shop.settings, "shop"))

    assert (shown.design, shown.permissions) == ({"start": {"version": 1}}, {})
    snapshots = {name: one.production for name, one in shop.domains().items()}
    assert shown.snapshots == {name: one.id for name, one in snapshots.items() if one}
    assert shown.snapshots.keys() == {"a", "b"}
    assert shown.published_at is not None


def test_open_rows_outlive_publishes_and_prunes(shop: Work) -> None:
    with production.open_rows(shop.engine, shop.settings, "shop", "a") as rows:
        for number in (2, 3, 4):
            renewed(shop, number)
            pruned(shop)

        assert {row["version"] for row in rows} == {1}
    assert versions(shop) == {4}


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

    assert {row["version"] for row in read(shop, "a")} == {4}
    assert len(looks) == 2


def test_a_damaged_snapshot_is_named(shop: Work) -> None:
    shown = shop.domains()["b"].production
    assert shown is not None
    (shop.settings.home / shown.path).unlink()

    with pytest.raises(SnapshotDamaged, match="the production snapshot of b is damaged"):
        read(shop, "b")
    assert len(read(shop, "a")) == 2


def test_unknown_and_unpublished_names_are_refused(shop: Work) -> None:
    shop.apply(domains=from_files("a", "b", "fresh"))

    with pytest.raises(NotFound, match=r'small app "shoop" .* did you mean "shop"'):
        read(shop, "a", app="shoop")
    with pytest.raises(NotFound, match='domain "aa" is not a known domain'):
        read(shop, "aa")
    with pytest.raises(Refused, match='"fresh" has nothing in production yet; publish it first'):
        read(shop, "fresh")


def test_reading_leaves_nothing_behind(shop: Work) -> None:
    with production.open_rows(shop.engine, shop.settings, "shop", "a") as rows:
        next(rows)

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
