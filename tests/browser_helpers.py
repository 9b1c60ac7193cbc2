"""Drives the pages in Chromium and Firefox with Playwright. Importing this skips a test module where it is missing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import firefox_bidi
import pytest

CHROMIUM, FIREFOX = Path("/usr/bin/chromium"), Path(firefox_bidi.FIREFOX)
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect

PHONE = {"width": 375, "height": 667}


@contextmanager
def running_browser(name: str, folder: Path) -> Iterator:
    """Chromium or Firefox; skips the tests where it is not installed."""
    if not (CHROMIUM if name == "chromium" else FIREFOX).exists():
        pytest.skip(f"{name.capitalize()} is not installed")
    with playwright.sync_playwright() as driver:
        if name == "chromium":
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        else:
            script = folder / "firefox"
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{firefox_bidi.__file__}" "$@"\n')
            script.chmod(0o755)
            browser = driver.firefox.launch(executable_path=script, channel="moz-firefox", downloads_path=folder)
        try:
            yield browser
        finally:
            browser.close()


def wait_for_steps(page, steps: int) -> None:
    """Waits until the image after so many steps is on the screen."""
    expect(page.locator(f".picture[data-steps='{steps}']")).to_be_visible()


def press(page, *keys: str) -> None:
    """Presses keys, each after the answer to the previous one."""
    for key in keys:
        before = int(page.locator("#steps").inner_text())
        page.keyboard.press(key)
        wait_for_steps(page, before + 1)


def image_position(page, at: tuple[float, float]) -> tuple[float, float]:
    """Screen position of image fraction (x, y)."""
    box = page.locator(".view .picture").bounding_box()
    return box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"]


def click_image(page, at: tuple[float, float]) -> None:
    page.mouse.click(*image_position(page, at))


def image(page) -> str:
    """The image as a data URL."""
    return page.locator(".view .picture").evaluate("canvas => canvas.toDataURL()")


def keep_sent(page) -> None:
    """Lets the page's next documents keep what they send: Playwright cannot read the requests of Firefox."""
    page.add_init_script("""
      window.sent = [];
      const send = window.fetch;
      window.fetch = (path, options) => {
        if (options?.body) window.sent.push(JSON.parse(options.body));
        return send(path, options);
      };""")


def sent(page) -> list:
    """The bodies sent by this document."""
    return page.evaluate("window.sent")


def is_firefox(page) -> bool:
    return page.context.browser.browser_type.name == "firefox"


def downloaded(page, click: Callable[[], None]) -> tuple[str, str]:
    """Name and text of the file that a click downloads."""
    if not is_firefox(page):
        with page.expect_download() as saved:
            click()
        return saved.value.suggested_filename, saved.value.path().read_text()
    # Playwright does not report downloads of files that the page made itself.
    before = set(page.downloads.iterdir())
    click()
    for _ in range(200):
        if new := [path for path in page.downloads.iterdir() if path not in before and path.stat().st_size]:
            return new[0].name, new[0].read_text()
        time.sleep(0.05)
    raise AssertionError("nothing was downloaded")


def start_trial(page, url: str) -> None:
    """Passes consent and instructions and starts the first trial."""
    page.goto(f"{url}/study/find")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Start the trials").click()
    page.get_by_role("button", name="Start the first trial").click()
    wait_for_steps(page, 0)
