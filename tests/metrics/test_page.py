"""The status page in a real browser, over a real daemon."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from kraftd.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.metrics.scrape import get
from tests.runtime.test_daemon import creation, register
from tests.runtime.test_metrics_listener import Watched

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1300,1000",
)
WAIT_S = 30


def quota(user: str) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        [EntryData([EntityData("user", user)], [OpData("producer_byte_rate", 1000.0, False)])], False
    )


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    process = Watched(tmp_path_factory.mktemp("page"))
    process.format()
    process.start()
    yield process
    process.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        yield driver
        driver.quit()


def text(browser: webdriver.Chrome, element_id: str) -> str:
    return browser.find_element(By.ID, element_id).text


def until(browser: webdriver.Chrome, element_id: str, expected: str) -> None:
    WebDriverWait(browser, WAIT_S).until(lambda _: expected in text(browser, element_id))


def open_page(browser: webdriver.Chrome, daemon: Watched) -> None:
    browser.get(f"http://127.0.0.1:{daemon.metrics_port}/")
    until(browser, "state", "serving")


def test_the_page_follows_the_cluster_without_being_loaded_again(
    browser: webdriver.Chrome, daemon: Watched
) -> None:
    open_page(browser, daemon)
    browser.execute_script("window.loadedOnce = true")
    assert "leader" in text(browser, "replicas")
    client = daemon.client()
    register(client)
    until(browser, "brokers", "fenced")
    client.call(creation("t"), 7)
    until(browser, "causes", "1 broker is fenced")
    assert browser.execute_script("return window.loadedOnce") is True
    assert browser.execute_script("return document.querySelector('#loop path').getAttribute('d')")


def test_few_events_are_shown_and_the_earlier_ones_are_folded(
    browser: webdriver.Chrome, daemon: Watched
) -> None:
    open_page(browser, daemon)
    client = daemon.client()
    for number in range(10):
        client.call(quota(f"a-user-with-a-long-name-{number}" * 20), 1)
    until(browser, "earlierCount", "earlier events")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#newest tr")) == 6
    assert not browser.find_element(By.ID, "earlier").is_displayed()
    browser.find_element(By.ID, "earlierCount").click()
    assert browser.find_element(By.ID, "earlier").is_displayed()
    script = (
        "const e = document.querySelector('#events'); return e.scrollWidth <= e.parentElement.clientWidth"
    )
    assert browser.execute_script(script), "a long event widens the page"


def test_the_page_contacts_no_other_host_and_logs_no_error(
    browser: webdriver.Chrome, daemon: Watched
) -> None:
    browser.get_log("performance")
    open_page(browser, daemon)
    urls = {
        line.split('"')[0]
        for entry in browser.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
        for line in entry["message"].split('"url":"')[1:]
    }
    own = f"http://127.0.0.1:{daemon.metrics_port}/"
    assert urls
    assert all(url.startswith((own, "data:")) for url in urls), urls
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_schemes(browser: webdriver.Chrome, daemon: Watched, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    open_page(browser, daemon)
    colours = browser.execute_script(
        "const of = name => getComputedStyle(document.body)[name].match(/[0-9]+/g).map(Number);"
        "return [of('color'), of('backgroundColor')]"
    )
    text_light, page_light = (sum(colour[:3]) / 3 for colour in colours)
    assert abs(text_light - page_light) > 150
    assert (page_light > 128) is (scheme == "light")


def test_a_stopped_node_is_shown_as_such_until_it_returns(browser: webdriver.Chrome, daemon: Watched) -> None:
    open_page(browser, daemon)
    daemon.stop(signal.SIGKILL)
    until(browser, "state", "no contact")
    until(browser, "causes", "does not answer")
    daemon.start()
    until(browser, "state", "serving")


def test_nothing_can_be_changed_through_the_page(daemon: Watched) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert get(daemon.metrics_port, "/", method=method)[0] == 405


def test_the_page_may_load_nothing_from_elsewhere(daemon: Watched) -> None:
    _, headers, body = get(daemon.metrics_port, "/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "://" not in body.replace("http://www.w3.org/2000/svg", "")
