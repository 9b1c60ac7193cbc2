"""Drives the pages in Chromium with Playwright. Importing this skips a test module where either is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if not CHROMIUM.exists():
    pytest.skip("Chromium is not installed", allow_module_level=True)
expect = playwright.expect

PHONE = {"width": 375, "height": 667}


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


def start_trial(page, url: str) -> None:
    """Passes consent and instructions and starts the first trial."""
    page.goto(f"{url}/study/find")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Start the trials").click()
    page.get_by_role("button", name="Start the first trial").click()
    wait_for_steps(page, 0)
