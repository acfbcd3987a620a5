"""The report of ``foldless demo``, and others, in a real browser: silent, offline, usable, readable, printable."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")
pytest.importorskip("typer", reason="reports need the extra cli")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
axe = pytest.importorskip("axe_core_python.selenium", reason="axe-core-python is not installed")

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from foldless.report import write  # noqa: E402
from support.studies import study  # noqa: E402

PROGRAMS = [shutil.which(each) for each in ("chromium", "chromedriver")]
pytestmark = pytest.mark.skipif(None in PROGRAMS, reason="chromium and chromedriver are not installed")
NASTY = "</script><script>document.title = 'caught'</script><img src=x onerror=\"document.title = 'caught'\">"
LONG = "a column with a name that goes on " + "and_on_" * 30
CASES = {
    "values": lambda: study((), n=150, target=LONG, name=LONG),
    "30 classes": lambda: study([f"class number {k} of thirty" for k in range(30)], n=300),
    "long names of classes": lambda: study([LONG, f"2 {LONG}", f"3 {LONG}"], n=90, groups=np.repeat(range(9), 10)),
    "three rows": lambda: study(n=3, folds=(), test=None, learning_curve=(), importance=()),
}


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAMS[0]
    for each in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1200,900"):
        options.add_argument(f"--{each}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(PROGRAMS[1]))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The address of the report that ``make demo`` ends with."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "foldless", "demo", "--quiet", "--out", "made"]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    path = folder / said.splitlines()[-1]
    assert path.name == "report.html"
    return path.as_uri()


def look(browser, width=1200, theme="light", media=""):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    wish = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [wish]})


def style(browser, selector, name):
    return browser.execute_script(f"return getComputedStyle(document.querySelector('{selector}')).{name}")


def to_middle(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    return element


def assert_all_is_inside_and_readable(browser, width):
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script("""
        return [...document.querySelectorAll(".plot svg text")].filter((text) => {
            const box = text.getBoundingClientRect(), card = text.closest(".card").getBoundingClientRect();
            return box.left < card.left || box.right > card.right || box.top < card.top;
        }).map((text) => text.textContent)""")
    assert outside == []
    found = axe.Axe().run(browser)["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_it_opens_without_a_word_and_without_a_request(browser, report):
    look(browser)
    browser.get_log("performance")
    browser.get(report)
    assert browser.get_log("browser") == []
    sent = [
        each["message"] for each in browser.get_log("performance") if "Network.requestWillBeSent" in each["message"]
    ]
    assert sent
    assert all(report in each or '"url":"data:' in each for each in sent)


def test_every_link_goes_to_its_section(browser, report):
    look(browser)
    browser.get(report)
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    links = browser.find_elements(By.CSS_SELECTOR, "nav a")
    assert len(links) == 7
    for link in links:
        link.click()
        section = browser.find_element(By.CSS_SELECTOR, link.get_attribute("href").split("html")[1])
        box = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", section)
        assert box["top"] < 900
        assert box["bottom"] > 0
        assert section.find_element(By.TAG_NAME, "h2").text
    assert browser.get_log("browser") == []


def test_a_click_on_a_header_sorts_and_a_second_turns_round(browser, report):
    look(browser)
    browser.get(report)

    def column():
        cells = "document.querySelectorAll('#grid-surprising tbody td:first-child')"
        return browser.execute_script(f"return [...{cells}].map((each) => Number(each.textContent))")

    assert column() != sorted(column())
    head = browser.find_element(By.CSS_SELECTOR, "#grid-surprising th")
    for order in ("ascending", "descending"):
        to_middle(browser, head).find_element(By.TAG_NAME, "button").click()
        assert head.get_attribute("aria-sort") == order
        assert column() == sorted(column(), reverse=order == "descending")


def test_the_button_changes_the_theme_that_the_system_wishes(browser, report):
    look(browser, theme="dark")
    browser.get(report)
    dark = style(browser, "body", "backgroundColor")
    button = browser.find_element(By.ID, "theme")
    assert button.text == "Light theme"
    button.click()
    assert style(browser, "body", "backgroundColor") == "rgb(255, 255, 255)" != dark
    button.click()
    assert style(browser, "body", "backgroundColor") == dark


def test_a_mark_tells_its_row_to_the_pointer_and_to_arrow_keys(browser, report):
    look(browser)
    browser.get(report)
    plot = to_middle(browser, browser.find_element(By.CSS_SELECTOR, '.plot[aria-label^="How clear"]'))
    tip = plot.find_element(By.CLASS_NAME, "tip")
    assert not tip.is_displayed()
    webdriver.ActionChains(browser).move_to_element(plot.find_element(By.CLASS_NAME, "mark")).perform()
    assert tip.text.startswith("row ")
    plot.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    plot.send_keys(Keys.ARROW_RIGHT)
    first = tip.text
    plot.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("row ")
    assert tip.text != first


def test_a_line_of_a_table_lights_up_its_row_in_the_plots(browser, report):
    look(browser)
    browser.get(report)
    line = to_middle(browser, browser.find_element(By.CSS_SELECTOR, "#grid-surprising tbody tr:nth-child(3)"))
    webdriver.ActionChains(browser).move_to_element(line).perform()
    lit = browser.find_elements(By.CSS_SELECTOR, "circle.on")
    assert len(lit) == 2  # how sure, and influence
    assert {each.get_attribute("data-row") for each in lit} == {line.get_attribute("data-row")}
    webdriver.ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "nav")).perform()
    assert not browser.find_elements(By.CSS_SELECTOR, "circle.on")


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")])
def test_it_fits_the_screen_and_can_be_read_by_all(browser, report, width, theme):
    look(browser, width, theme)
    browser.get(report)
    assert_all_is_inside_and_readable(browser, width)


@pytest.mark.parametrize("name", CASES)
def test_odd_studies_fit_and_can_be_read_too(browser, tmp_path, name):
    write(CASES[name](), tmp_path / "odd.html")
    for width, theme in ((1200, "dark"), (390, "light")):
        look(browser, width, theme)
        browser.get((tmp_path / "odd.html").as_uri())
        assert_all_is_inside_and_readable(browser, width)
    assert browser.get_log("browser") == []


def test_all_links_are_in_sight_on_a_phone(browser, report):
    look(browser, 390)
    browser.get(report)
    links = browser.find_elements(By.CSS_SELECTOR, "nav a")
    assert all(each.rect["x"] >= 0 and each.rect["x"] + each.rect["width"] <= 390 for each in links)
    look(browser)


def test_tables_that_go_on_fade_until_they_are_scrolled(browser, tmp_path):
    write(CASES["30 classes"](), tmp_path / "many.html")
    look(browser, 390)
    browser.get((tmp_path / "many.html").as_uri())

    def fades(name, scroll=""):
        found = f"document.querySelector('#grid-{name}').closest('.scroll')"
        script = f"const box = {found}; {scroll}; requestAnimationFrame(() => requestAnimationFrame(() =>"
        return browser.execute_async_script(f"{script} arguments[0](box.parentElement.className)))")

    assert fades("columns") == "edges right"
    assert fades("columns", "box.scrollLeft = 9999") == "edges"
    assert fades("classes") == "edges right below"
    assert fades("classes", "box.scrollTop = 9999") == "edges right"
    look(browser)


def test_a_plot_alone_has_its_text_beside_it(browser, tmp_path):
    alone = study(n=60, learning_curve=())
    write(replace(alone, held_out=replace(alone.held_out, influence=None)), tmp_path / "alone.html")
    look(browser)
    browser.get((tmp_path / "alone.html").as_uri())
    for name in ("held_out", "target"):
        text = browser.find_element(By.ID, f"t-{name}")
        plot = text.find_element(By.XPATH, "..").find_element(By.CLASS_NAME, "plot")
        assert text.rect["x"] >= plot.rect["x"] + plot.rect["width"]
        assert text.rect["y"] < plot.rect["y"] + plot.rect["height"]


def test_printed_heads_of_tables_are_text(browser, report):
    look(browser)
    browser.get(report)
    head = "document.querySelector('#grid-surprising th')"
    for event, count in (("beforeprint", 0), ("afterprint", 1)):
        browser.execute_script(f"dispatchEvent(new Event('{event}'))")
        assert browser.execute_script(f"return [{head}.textContent, {head}.children.length]") == ["row", count]


def test_on_paper_it_is_light_and_tables_are_whole(browser, report):
    look(browser, 760, "dark", "print")
    browser.get(report)
    assert style(browser, "body", "backgroundColor") == "rgb(255, 255, 255)"
    assert style(browser, "nav", "display") == "none"
    assert style(browser, ".tall", "maxHeight") == "none"
    assert browser.find_element(By.CSS_SELECTOR, "#grid-surprising th").text == "row"
    look(browser)


def test_names_in_the_file_do_nothing(browser, tmp_path):
    write(study((NASTY, "b"), name=NASTY, target=NASTY), Path(tmp_path, "nasty.html"))
    browser.get((tmp_path / "nasty.html").as_uri())
    assert browser.title.startswith(NASTY[:20])
    assert browser.get_log("browser") == []
    assert not browser.find_elements(By.TAG_NAME, "img")
