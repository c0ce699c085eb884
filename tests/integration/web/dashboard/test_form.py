"""The form of an action in a real Chromium: it needs no JSON, and loses nothing of a document."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from services import changes
from tests.browser import Chromium, hold_back
from tests.factories import make_app
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.dashboard.conftest import SHOWN, TASK, Browse


def _written(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.input_value("#text"))
    return found


def _write(page: Page, document: dict[str, Any]) -> None:
    page.evaluate("one => { document.getElementById('as-json').open = true }", None)
    page.fill("#text", json.dumps(document))


def test_a_task_has_fields_for_its_arguments_its_queue_and_what_is_known(
    chromium: Chromium, shop: Web
) -> None:
    with chromium.tab(shop.url, shop.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        page.check("[data-step=maintenance]")
        page.check("[data-step=celery_task]")
        offered = page.locator("#tasks option").evaluate_all("all => all.map((one) => one.value)")
        page.fill("[data-path='operations.celery_task.task']", TASK)
        page.fill("[data-path='operations.celery_task.args']", 'Paris, 5, true, "5"')
        page.fill("[data-path='operations.celery_task.kwargs']", "limit=5, region=eu")
        page.fill("[data-path='operations.celery_task.queue']", "night")
        task = _written(page)["operations"]["celery_task"]
        page.fill("[data-path='operations.celery_task.args']", '[["a, b"], {"c": 1}]')
        nested = _written(page)["operations"]["celery_task"]["args"]
        page.fill("[data-path='name']", "kept")
        page.fill("[data-path='operations.celery_task.task']", "shop.tasks.other")
        name = _written(page)["name"]

    assert offered == [TASK, SHOWN]
    assert task == {
        "task": TASK,
        "args": ["Paris", 5, True, "5"],
        "kwargs": {"limit": 5, "region": "eu"},
        "queue": "night",
    }
    assert (nested, name) == ([["a, b"], {"c": 1}], "kept")
    assert tab.faults == []


def test_a_task_has_a_field_for_each_parameter_that_its_worker_reports(
    chromium: Chromium, shop: Web
) -> None:
    with chromium.tab(shop.url, shop.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        page.select_option("[name=rhythm]", "day")
        page.fill("[name=time]", "07:00")
        page.check("[data-step=celery_task]")
        meaning = page.locator("#meaning")
        expect(meaning.locator("li", has_text="operations.celery_task")).to_have_count(1)
        expect(meaning.locator("li:visible")).to_have_count(0)
        page.fill("[data-path='operations.celery_task.task']", SHOWN)
        expect(meaning).to_contain_text("missing a required argument: 'city'")
        parameters = page.locator("[data-parameters] label")
        shown = parameters.evaluate_all(
            "all => all.map(one => [one.innerText.trim(), one.querySelector('input').placeholder])"
        )
        assert tab.serious() == []
        page.fill("[data-argument=city]", "Paris, 5e")
        page.fill("[data-argument=dry_run]", "true")
        expect(meaning).not_to_contain_text("missing a required argument")
        named = _written(page)["operations"]["celery_task"]

    assert shown == [["city", "required"], ["limit", "5"], ["dry_run", "False"]]
    assert named == {"task": SHOWN, "kwargs": {"city": "Paris, 5e", "dry_run": True}}
    assert tab.faults == []


def test_arguments_that_no_parameter_has_are_left_to_the_arguments_as_a_whole(
    chromium: Chromium, shop: Web
) -> None:
    with chromium.tab(shop.url, shop.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        _write(page, {"operations": {"celery_task": {"task": SHOWN, "args": ["Lyon", 3]}}})
        expect(page.locator("[data-argument=limit]")).to_have_value("3")
        page.fill("[data-argument=limit]", "")
        emptied = _written(page)["operations"]["celery_task"]
        _write(page, {"operations": {"celery_task": {"task": SHOWN, "kwargs": {"more": 1}}}})
        expect(page.locator("[data-parameters]")).to_be_hidden()
        expect(page.locator("[data-path='operations.celery_task.kwargs']")).to_have_value("more=1")

    assert emptied == {"task": SHOWN, "kwargs": {"city": "Lyon"}}
    assert tab.faults == []


KINDS = [
    pytest.param("duration", "5 min", "PT5M", id="minutes"),
    pytest.param("duration", "1 h 30 min", "PT1H30M", id="hours_and_minutes"),
    pytest.param("duration", "2 hours and 5s", "PT2H5S", id="words"),
    pytest.param("duration", "1 day 2 h", "P1DT2H", id="days"),
    pytest.param("duration", "PT5M", "PT5M", id="as_in_the_document"),
    pytest.param("duration", "5 parsecs", "5 parsecs", id="no_duration_stays"),
    pytest.param("duration", "5 min 1 h", "5 min 1 h", id="wrong_order_stays"),
    pytest.param("durations", "1 min, 5 min", ["PT1M", "PT5M"], id="several"),
    pytest.param("argv", "./a \"b c\" 'd \"e' f=\"g\"", ["./a", "b c", 'd "e', "f=g"], id="quotes"),
    pytest.param("values", 'a, 1.5, null, "true"', ["a", 1.5, None, "true"], id="values"),
    pytest.param("values", '[["a", "b"]]', [["a", "b"]], id="values_as_json"),
    pytest.param("value", "a, b=c", "a, b=c", id="a_text_is_one_value"),
    pytest.param("value", '"5"', "5", id="a_text_of_a_number"),
    pytest.param("value", '{"a": [1]}', {"a": [1]}, id="a_value_as_json"),
    pytest.param("named", "a=1, b=x", {"a": 1, "b": "x"}, id="named"),
    pytest.param("named", '{"a=b": [1]}', {"a=b": [1]}, id="named_as_json"),
    pytest.param("named", "oops", "oops", id="no_pair_stays"),
    pytest.param("retries", "2", 3, id="retries"),
]  # fmt: skip


def test_fields_write_what_people_write_and_read_it_back(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        tab.page.goto(f"/apps/{APP}/new-action")
        for one in KINDS:
            kind, text, value = one.values
            seen = "([kind, text]) => formKinds[kind].read(text)"
            assert tab.page.evaluate(seen, [kind, text]) == value, one.id
            back = "([kind, value]) => formKinds[kind].read(String(formKinds[kind].show(value)))"
            assert tab.page.evaluate(back, [kind, value]) == value, one.id


def test_cron_rules_dates_and_intervals_are_written_in_fields(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        page.check("[data-step=maintenance]")
        page.fill("[data-path=name]", "tidy")
        page.select_option("[name=rhythm]", "cron")
        page.fill("[name=cron]", "30 7 * * mon-fri")
        expect(page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
        page.fill("[name=cron]", "*/7 1,2 * * *")
        expect(page.locator("#meaning")).to_contain_text("Next runs")
        page.select_option("[name=rhythm]", "date")
        page.fill("[name=due]", "2126-03-01T09:00")
        dated = _written(page)["when"]
        expect(page.locator("#meaning")).to_contain_text("2126-03-01")
        page.select_option("[name=rhythm]", "every")
        page.fill("[name=every]", "90")
        expect(page.locator("#meaning")).to_contain_text("1 hour 30 minutes")
        every = _written(page)["when"]

    assert dated == {"due_date": "2126-03-01T09:00", "timezone": "Europe/Paris"}
    assert every == {"every": 5400}
    assert tab.faults == []


ODD: dict[str, Any] = {
    "name": "odd",
    "when": [{"cron_rule": "0 3 * * *"}, {"every": "PT2H", "starting_at": "2026-01-01T00:00:00Z"}],
    "operations": {"publish": {"data": ["sales"]}, "send_email": {"template": "hello"}},
    "recipients": "all",
    "policy": {"look_back": "PT1H", "retry": {"max_attempts": 2, "backoff": ["PT1M", 90]}},
    "hooks": {
        "on_failure": [{"pager": "ops"}, {"webhook": "env:A"}, {"mail": "a@b.c", "when": "first"}],
        "on_success": [{"notify": "ops"}],
        "on_missed": [],
        "monitor": True,
    },
    "more": {"deep": [None, 1.5]},
}  # fmt: skip


def test_a_change_in_a_field_leaves_what_no_field_can_show(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        _write(page, ODD)
        expect(page.locator("[name=rhythm]")).to_have_value("own")
        page.fill("[data-path=owner]", "ann")
        owned = _written(page)
        page.fill(".hook:last-child [data-hook=to]", "https://example.com/x")
        page.select_option(".hook:nth-last-child(2) [data-hook=kind]", "webhook")
        page.select_option(".hook:nth-last-child(2) [data-hook=on]", "on_success")
        hooks = _written(page)["hooks"]
        page.fill("#text", "{oops")
        expect(page.locator("#fields")).to_be_hidden()

    assert owned == {**ODD, "owner": "ann"}
    successes = [{"notify": "ops"}, {"webhook": "https://example.com/x"}]
    assert hooks == {**ODD["hooks"], "on_success": successes}


STRANGE: list[dict[str, Any]] = [
    {},
    {"when": 5},
    {"operations": []},
    {"hooks": [1]},
    {"recipients": ["x"]},
    {"name": {"a": 1}, "policy": "fast", "when": {"rrule": 7}},
    {"when": {"on": 3}},
    {"operations": {"celery_task": 5, "command": {"run": "x", "shell": ["a"]}}},
    {"hooks": {"on_failure": "a@b.c"}, "when": {"every": {"minutes": 5}}},
]


def test_every_document_opens_in_the_form(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        for document in STRANGE:
            _write(page, document)
            expect(page.locator("#fields")).to_be_visible()
            assert _written(page) == document

    assert tab.faults == []


def test_a_test_is_sent_to_whom_a_hook_would_tell(chromium: Chromium, shop: Web) -> None:
    with chromium.tab(shop.url, shop.token()) as tab:
        page = tab.page
        page.goto(f"/apps/{APP}/new-action")
        page.check("[data-step=maintenance]")
        page.fill("[data-path=name]", "tidy")
        page.select_option("[name=rhythm]", "day")
        page.fill("[name=time]", "07:00")
        page.fill("[data-hook=to]", "ann@example.com")
        page.click("#meaning >> text=Send a test")
        expect(page.locator("#tried-1")).to_have_text("Sent.")

    audited = shop.client().get("/api/audit", params={"app": APP})
    assert '"object":"ann@example.com"' in audited.text
    (mail,) = (shop.opened.settings.home / "mail").rglob("*.eml")
    assert "a test: nothing ran" in mail.read_text()
    assert tab.faults == []


def test_a_preview_that_comes_before_the_script_shows_no_fault(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        held = hold_back(page, "**/form-save.js*")
        with page.expect_response("**/check"):
            page.goto(f"/apps/{APP}/new-action", wait_until="commit")
        held[0].continue_()
        missing = "Still to fill in: What it runs, When it runs, Name."
        expect(page.locator("#why-not")).to_have_text(missing)
        expect(page.locator("#meaning li").first).to_be_hidden()

    assert tab.faults == []


def test_the_keyboard_alone_writes_an_action(chromium: Chromium, web_on_sqlite: Web) -> None:
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        keyboard = tab.page.keyboard
        tab.page.goto(f"/apps/{APP}/new-action")
        _tab_to(tab.page, "[data-step=maintenance]")
        keyboard.press("Space")
        _tab_to(tab.page, "[name=rhythm]")
        keyboard.type("by a cron")
        _tab_to(tab.page, "[name=cron]")
        keyboard.press("ControlOrMeta+a")
        keyboard.type("30 7 * * mon-fri")
        _tab_to(tab.page, "[data-path=name]")
        keyboard.type("tidy")
        expect(tab.page.locator("#meaning")).to_contain_text("at 07:30 on Monday to Friday")
        _tab_to(tab.page, "button:text-is('Save')")
        keyboard.press("Enter")
        expect(tab.page.locator(".notice span")).to_have_text("tidy is saved.")

    assert tab.faults == []


def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    wanted = page.locator(selector)
    for _ in range(40):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{selector} cannot be reached by the keyboard")


def test_the_form_opens_in_a_small_app_without_templates(
    web_on_sqlite: Web, browse: Browse
) -> None:
    make_app(web_on_sqlite.engine, "bare")
    changes.add(web_on_sqlite.opened.for_request("bare", is_bound=True, bearer="tests"), [NIGHTLY])
    browser = browse(web_on_sqlite)

    pages = [
        browser.get(path) for path in ("/apps/bare/new-action", "/apps/bare/actions/nightly/edit")
    ]

    assert [page.status_code for page in pages] == [200, 200]
