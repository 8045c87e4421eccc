"""The pages in a real browser: load, select, drag, ask, download, go wrong, and never look elsewhere."""

import csv
import io
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dphist.report import report_page

pytestmark = pytest.mark.browser


def value(page):
    return float(page.locator("#value").get_attribute("data-value"))


def settle(page):
    """Wait until no question is under way and the figure is drawn."""
    page.wait_for_function(
        "() => !document.body.classList.contains('busy') && document.documentElement.dataset.drawn"
    )


def asked_only(watched, address):
    host = urlsplit(address).netloc
    strangers = [
        url
        for url in watched.requests
        if not url.startswith(("data:", "blob:")) and urlsplit(url).netloc != host
    ]
    assert strangers == []
    assert watched.problems == []


def wait_for_value(page, expected):
    page.wait_for_function("v => Number(document.getElementById('value').dataset.value) === v", arg=expected)
    settle(page)


def test_a_range_is_dragged_and_the_answer_is_the_releases(look, address, release):
    watched = look(address)
    page = watched.page
    settle(page)
    assert value(page) == release.answer().value
    # Drag from the bar of age 30 to that of age 40.
    bars = page.locator("#chart svg [aria-roledescription='rect mark']")
    assert bars.count() == 100
    first, last = bars.nth(30).bounding_box(), bars.nth(40).bounding_box()
    height = page.locator("#chart svg").bounding_box()["y"] + 60
    page.mouse.move(first["x"] + first["width"] / 2, height)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] / 4, height, steps=6)
    page.mouse.move(last["x"] + last["width"] / 2, height)
    page.mouse.up()
    own = release.answer(where={"age": (30, 40)})
    wait_for_value(page, own.value)
    assert page.locator("#q").input_value() == "age between 30 and 40"
    assert page.locator("#interval").inner_text() == f"95% interval {own.low:,.1f} to {own.high:,.1f}"
    page.wait_for_url("**age+between+30+and+40**")
    asked_only(watched, address)


def test_keyboard_alone_asks_zooms_and_chooses(look, address, release):
    watched = look(address)
    page = watched.page
    settle(page)
    page.locator("#q").focus()
    page.keyboard.type("age >= 65 and place = 'north'")
    page.keyboard.press("Enter")
    wait_for_value(page, release.answer(where={"age": (65, None), "place": "north"}).value)
    page.get_by_role("button", name="Zoom to selection").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 35")
    page.get_by_label("to", exact=True).first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("69")
    page.keyboard.press("Tab")
    wait_for_value(page, release.answer(where={"age": (65, 69), "place": "north"}).value)
    page.get_by_role("button", name="Clear").press("Enter")
    wait_for_value(page, release.answer().value)
    asked_only(watched, address)


def test_hierarchies_open_and_close_and_groups_are_chosen(look, address, release):
    watched = look(f"{address}/?show=place")
    page = watched.page
    settle(page)
    page.locator("#numbers summary").click()
    page.get_by_role("button", name="open south").click()
    page.wait_for_selector("#rows >> text=hills")
    page.get_by_role("button", name="choose hills").click()
    wait_for_value(page, release.answer(where={"place": "hills"}).value)
    assert page.locator("#q").input_value() == "place = 'hills'"
    page.get_by_role("button", name="all of place ›").click()
    page.wait_for_selector("#rows >> text=north")
    page.get_by_role("checkbox", name="north").check()
    wait_for_value(page, release.answer(where={"place": ["north", "hills"]}).value)
    asked_only(watched, address)


def test_a_click_on_a_bar_opens_its_group(look, address):
    watched = look(f"{address}/?show=place")
    page = watched.page
    settle(page)
    page.locator("#chart svg .layer_0_marks path").nth(1).click(position={"x": 20, "y": 8})
    page.wait_for_selector("#rows >> text=hills", state="attached")
    asked_only(watched, address)


def test_the_selection_is_downloaded(look, address, release):
    watched = look(f"{address}/?q=age+between+30+and+40")
    page = watched.page
    settle(page)
    with page.expect_download() as waiting:
        page.locator("#download").click()
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert [int(row["age"]) for row in rows] == list(range(30, 41))
    assert float(rows[3]["estimate"]) == release.answer(where={"age": 33}).value


def test_two_attributes_make_a_heat_map_in_dark(look, address):
    watched = look(address, scheme="dark", width=400)
    page = watched.page
    settle(page)
    page.locator("#by").select_option("income")
    page.wait_for_selector("#chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    asked_only(watched, address)


def test_mistakes_are_said_in_words_and_the_page_lives_on(look, address, release):
    watched = look(address)
    page = watched.page
    settle(page)
    for wrong, said in (("height = 3", "there is no attribute"), ("age between 40 and 30", "backwards")):
        page.locator("#q").fill(wrong)
        page.get_by_role("button", name="Ask").click()
        page.wait_for_function(
            "text => document.getElementById('problem').textContent.includes(text)", arg=said
        )
        # The answer to another question would be taken for this one's.
        for shown in (".answer", "figure", "#numbers", "#download"):
            assert not page.locator(shown).is_visible()
    page.locator("#q").fill("age < 10")
    page.get_by_role("button", name="Ask").click()
    wait_for_value(page, release.answer(where={"age": (None, 9)}).value)
    assert page.locator(".answer").is_visible()
    assert page.locator("#problem").inner_text() == ""


def test_without_scripts_the_page_still_answers(look, address, release):
    page = look(address, script=False).page
    page.locator("#q").fill("age between 30 and 40")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_url("**q=age*")
    assert value(page) == release.answer(where={"age": (30, 40)}).value


def test_two_releases_are_compared(look, address, release, second):
    watched = look(f"{address}/compare?q=age+%3C+20")
    page = watched.page
    page.wait_for_function("() => document.querySelectorAll('.chart svg').length === 2")
    shown = [float(each.get_attribute("data-value")) for each in page.locator(".answer output").all()]
    assert shown == [each.answer(where={"age": (None, 19)}).value for each in (release, second)]
    asked_only(watched, address)


def test_the_planner_forecasts_and_follows_its_slider(look, address):
    watched = look(f"{address}/plan")
    page = watched.page
    page.get_by_role("button", name="Forecast").click()
    page.wait_for_selector("#rows >> text=laplace")
    row = page.locator("#rows tr", has_text="laplace").first
    assert row.locator("td").first.inner_text() == "1.36"
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.getElementById('epsilon').value === '0.01'")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#rows tr')].some("
        "row => row.textContent.startsWith('laplace') && row.textContent.includes('141'))"
    )
    asked_only(watched, address)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_report_works_from_a_file_and_fetches_nothing(look, release, tmp_path, width, scheme):
    page_file = tmp_path / "report.html"
    page_file.write_text(report_page(release, title="Visits"), encoding="utf-8")
    watched = look(page_file.as_uri(), width=width, scheme=scheme)
    page = watched.page
    page.wait_for_function("() => document.querySelectorAll('.chart svg').length === 4")
    assert watched.requests == [page_file.as_uri()]
    assert watched.problems == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(ink, paper) > 7


def violations(page):
    """What axe finds wrong with a page, for people who do not see it or use no mouse."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    script = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(script)
    found = page.evaluate("axe.run()")["violations"]
    return [(each["id"], each["nodes"][0]["html"][:160]) for each in found]


PAGES = {
    "explore": "/?q=age+between+30+and+40",
    "hierarchy": "/?show=place&node=0",
    "map": "/?show=age&by=place&colour=uncertainty&interval=guaranteed",
    "compare": "/compare",
    "plan": "/plan",
    "error": "/?q=nonsense",
}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_axe_finds_nothing_on_any_page(browser, address, release, tmp_path, width, scheme):
    report = tmp_path / "report.html"
    report.write_text(report_page(release, title="Visits"), encoding="utf-8")
    places = {name: address + path for name, path in PAGES.items()}
    places["report"] = report.as_uri()
    # What looks at the pages is no part of them, so their policies do not bind it.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    found = {}
    for name, place in places.items():
        page = context.new_page()
        page.goto(place)
        if name not in ("plan", "error"):
            page.wait_for_function("() => document.documentElement.dataset.drawn")
        wrong = violations(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append(("wider than the window", ""))
        if wrong:
            found[name] = wrong
        page.close()
    context.close()
    assert found == {}


def test_guaranteed_intervals_and_uncertainty_are_a_click_away(look, address, release):
    watched = look(f"{address}/?q=age+between+30+and+40")
    page = watched.page
    settle(page)
    assert "most likely lies between" in page.locator("#caveats").inner_text()
    page.get_by_label("guaranteed intervals").check()
    sure = release.answer(where={"age": (30, 40)}, interval="guaranteed")
    text = f"95% interval {sure.low:,.1f} to {sure.high:,.1f}"
    page.wait_for_function("text => document.getElementById('interval').textContent === text", arg=text)
    page.wait_for_url("**interval=guaranteed**")
    assert "That is proven" in page.locator("#caveats").inner_text()
    assert 'interval="guaranteed"' in page.locator("#python").text_content()
    assert not page.get_by_label("Colour").is_visible()
    page.locator("#by").select_option("place")
    page.get_by_label("Colour").select_option("uncertainty")
    page.wait_for_function("() => document.getElementById('caption').textContent.startsWith('How far off')")
    settle(page)
    asked_only(watched, address)


def test_the_reports_switch_shows_guaranteed_intervals(look, release, tmp_path):
    place = tmp_path / "report.html"
    place.write_text(report_page(release, title="Visits"), encoding="utf-8")
    watched = look(place.as_uri())
    page = watched.page
    page.wait_for_function("() => document.documentElement.dataset.drawn")
    page.locator("figure summary").first.click()
    first = lambda kind: page.locator(f"tbody.{kind} tr").first  # noqa: E731
    assert first("likely").is_visible()
    assert not first("sure").is_visible()
    page.get_by_label("Show guaranteed intervals").check()
    assert first("sure").is_visible()
    assert not first("likely").is_visible()
    sure = release.answer(where={"age": 0}, interval="guaranteed")
    assert first("sure").locator("td").last.inner_text() == f"{sure.high:,.1f}"
    # The budget is folded, and opens.
    assert not page.locator("ul.budget").is_visible()
    page.get_by_text("What the budget of").click()
    assert page.locator("ul.budget").first.is_visible()
    assert watched.problems == []


def test_the_planner_begins_with_an_example_and_draws_error_against_epsilon(look, address):
    watched = look(f"{address}/plan", width=400, scheme="dark")
    page = watched.page
    page.wait_for_selector("#curve-chart svg")
    assert page.locator("#curve-rows tr").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    asked_only(watched, address)


def contrast(one, other):
    """The contrast ratio of two colours, as accessibility guidelines define it."""
    lights = []
    for colour in (one, other):
        parts = [int(float(part)) / 255 for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)
