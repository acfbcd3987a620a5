"""The report of the data that come with scikit-learn in a real browser: silent, offline, usable, readable."""

import shutil

import pytest
from sklearn.datasets import load_breast_cancer

pytest.importorskip("pandas", reason="reports need the extra cli")
pytest.importorskip("skops", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
axe = pytest.importorskip("axe_core_python.selenium", reason="axe-core-python is not installed")

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from foldless.report import write  # noqa: E402
from foldless.tables import Options, Run, Table, Wishes  # noqa: E402
from support.studies import study  # noqa: E402

PROGRAMS = [shutil.which(each) for each in ("chromium", "chromedriver")]
pytestmark = pytest.mark.skipif(None in PROGRAMS, reason="chromium and chromedriver are not installed")
NASTY = "</script><script>document.title = 'caught'</script><img src=x onerror=\"document.title = 'caught'\">"


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
    """The address of a report of some rows and columns of the data of ``foldless demo``."""
    data = load_breast_cancer(as_frame=True)
    frame = data.data.iloc[:90, :4].assign(diagnosis=data.target_names[data.target[:90]])
    found, _ = Run(Table(frame, "tumours.csv", "csv"), Wishes("diagnosis"), Options(permutations=19)).study()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(found, path)
    return path.as_uri()


def look(browser, width=1200, theme="light"):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    wish = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wish]})


def background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


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


def test_a_click_on_a_header_sorts_and_a_second_turns_round(browser, report):
    look(browser)
    browser.get(report)

    def column():
        cells = "document.querySelectorAll('#grid-surprising tbody td:first-child')"
        return browser.execute_script(f"return [...{cells}].map((each) => Number(each.textContent))")

    assert column() != sorted(column())
    head = browser.find_element(By.CSS_SELECTOR, "#grid-surprising th")
    for order in ("ascending", "descending"):
        browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", head)
        head.find_element(By.TAG_NAME, "button").click()
        assert head.get_attribute("aria-sort") == order
        assert column() == sorted(column(), reverse=order == "descending")


def test_the_button_changes_the_theme_that_the_system_wishes(browser, report):
    look(browser, theme="dark")
    browser.get(report)
    dark = background(browser)
    button = browser.find_element(By.ID, "theme")
    assert button.text == "Light theme"
    button.click()
    assert background(browser) == "rgb(255, 255, 255)" != dark
    button.click()
    assert background(browser) == dark


def test_a_mark_tells_its_row_to_the_pointer_and_to_arrow_keys(browser, report):
    look(browser)
    browser.get(report)
    plot = browser.find_element(By.CSS_SELECTOR, '.plot[aria-label^="How sure"]')
    tip = plot.find_element(By.CLASS_NAME, "tip")
    assert not tip.is_displayed()
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    mark = plot.find_element(By.CLASS_NAME, "mark")
    webdriver.ActionChains(browser).move_to_element(mark).perform()
    assert tip.text.startswith("row ")
    plot.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    plot.send_keys(Keys.ARROW_RIGHT)
    first = tip.text
    plot.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("row ")
    assert tip.text != first


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (390, "dark")])
def test_it_fits_the_screen_and_can_be_read_by_all(browser, report, width, theme):
    look(browser, width, theme)
    browser.get(report)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(browser)["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_names_in_the_file_do_nothing(browser, tmp_path):
    write(study((NASTY, "b"), name=NASTY, target=NASTY), tmp_path / "nasty.html")
    browser.get((tmp_path / "nasty.html").as_uri())
    assert browser.title.startswith(NASTY[:20])
    assert browser.get_log("browser") == []
    assert not browser.find_elements(By.TAG_NAME, "img")
