"""A browser, and a tab that notes what its pages say, ask for or run."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("QUORISK_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "no Chromium; scripts/ensure_chromium.sh installs it, or set QUORISK_BROWSER to one"
    with sync_playwright() as playwright:
        # as root, as in containers, Chromium runs without its sandbox or not at all
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser):
    """A tab, and what its pages said, asked for or ran: opening one takes longer than most tests."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: said.append(request.url) if not request.url.startswith("data:") else None)
    page.add_init_script("addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))")
    yield page, said
    page.close()
