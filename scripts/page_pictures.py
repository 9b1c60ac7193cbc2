"""Photographs every page of the browser for the docs (docs/screenshots). Run it from the repository's root.

It takes about two minutes: it serves a small study and one game of scripted players on this machine alone, and drives
Chromium through the pages.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from scrubjay.api import play
from scrubjay.files import write_atomically
from scrubjay.game.record import save_records
from scrubjay.web.server import Server, Settings, running

CHROMIUM = "/usr/bin/chromium"
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 667}
SHRUNK, QUALITY = 960, 72
"""Width of a desktop's picture, and WebP's quality."""
GOAL, SEED = "Tomato", 5
STUDY = """
name = "find-1"
title = "Find the tomato"
kind = "seek"
consent = \"\"\"You are invited to a study of how people search for objects in rooms. It takes about five minutes.
Your actions are stored without your name.

You may stop at any time by closing the page.\"\"\"
instructions = \"\"\"A tomato is hidden in a kitchen. Walk around, open doors and drawers,
and say when you see it close by.\"\"\"
trials = 1
repeats = 100
give_up_seconds = 1
code = "C1A2B3"
practice = {{scene = "{scene}", goal = "Tomato"}}
[[before]]
name = "age"
ask = "How old are you?"
kind = "text"
[[before]]
name = "games"
ask = "How often do you play video games?"
kind = "choice"
choices = ["Never", "Now and then", "Every day"]
[[after]]
name = "hard"
ask = "How hard was it to find the object?"
kind = "scale"
points = 7
low = "Very easy"
high = "Very hard"
[[after]]
name = "remarks"
ask = "Is there anything else that you want to tell us?"
kind = "text"
long = true
required = false
[[places]]
source = "scripted"
records = "hidden.jsonl"
"""


class Photographer:
    """Takes pictures of one page, at two widths."""

    def __init__(self, page: Page, url: str, out: Path) -> None:
        self.page, self.url, self.out = page, url.rstrip("/"), out

    def take(self, name: str, phone: bool = False, dark: bool = False) -> None:
        """Writes NAME_desktop.webp, and NAME_phone.webp and NAME_dark.webp if asked for."""
        self._write(f"{name}_desktop", DESKTOP)
        if dark:
            self.page.emulate_media(color_scheme="dark")
            self._write(f"{name}_dark", DESKTOP)
            self.page.emulate_media(color_scheme="light")
        if phone:
            self._write(f"{name}_phone", PHONE)
            self.page.set_viewport_size(DESKTOP)

    def _write(self, name: str, viewport: dict) -> None:
        self.page.set_viewport_size(viewport)
        self.page.wait_for_timeout(300)
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if viewport is DESKTOP:
            picture = picture.resize((SHRUNK, SHRUNK * DESKTOP["height"] // DESKTOP["width"]), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", quality=QUALITY, method=6)
        write_atomically(self.out / f"{name}.webp", buffer.getvalue())
        print(f"{name}.webp: {len(buffer.getvalue()) // 1000} kB", flush=True)

    def go(self, path: str) -> None:
        """Opens a page, also one that differs in its fragment only."""
        self.page.goto("about:blank")
        self.page.goto(self.url + path)

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def wait(self, steps: int) -> None:
        self.page.locator(f".picture[data-steps='{steps}']").wait_for(timeout=120_000)

    def press(self, key: str) -> None:
        """Presses a key and waits for the picture after it."""
        steps = int(self.page.locator("#steps").inner_text())
        self.page.keyboard.press(key)
        self.wait(steps + 1)

    def start(self, role: str, scene: str, opponent: str, seed: int) -> None:
        """Starts a game, the same one each time."""
        self.page.unroute_all()
        self.page.route(
            "**/api/play", lambda route: route.continue_(post_data={**route.request.post_data_json, "seed": seed})
        )
        self.go(f"/play#{role}")
        self.page.get_by_label("Object").select_option(GOAL)
        self.page.get_by_label("Room").select_option(scene)
        self.page.get_by_label("Seeker" if role == "hide" else "Hider").select_option(opponent)
        self.button("Start")
        self.wait(0)

    def walk_to_something_that_opens(self) -> None:
        """Walks and turns until something lights up."""
        for key in "wwewwwewwwwewwwewwwwww":
            self.page.keyboard.press("n")
            if self.page.locator(".lit").is_visible():
                return
            self.press(key)


def photograph(camera: Photographer, server: Server, scene: str) -> None:
    """Goes through all pages."""
    page = camera.page
    camera.go("/")
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    camera.take("home", phone=True, dark=True)
    camera.go("/play#hide")
    expect(page.get_by_label("Seeker")).to_be_visible()
    camera.take("play")
    photograph_games(camera, scene)
    camera.go("/watch")
    expect(page.locator("#listed a")).to_be_visible()
    camera.take("watch_choose")
    page.locator("#listed a").click()
    page.locator("#scrubber").wait_for(timeout=120_000)
    page.locator("#scrubber").fill(str(int(page.locator("#scrubber").get_attribute("max") or 0) - 8))
    page.wait_for_timeout(1500)
    camera.take("watch", phone=True)
    photograph_study(camera)
    camera.go("/admin")
    camera.take("admin_sign_in")
    page.get_by_label("Admin token").fill(server.admin_token)
    camera.button("Sign in")
    expect(page.locator(".study h2")).to_be_visible()
    camera.take("admin", phone=True)
    camera.go("/study/find-7")
    camera.take("wrong_link")


def photograph_games(camera: Photographer, scene: str) -> None:
    page = camera.page
    camera.start("seek", scene, "somewhere", SEED)
    camera.walk_to_something_that_opens()
    camera.take("play_seek", phone=True, dark=True)
    camera.button("New game")
    camera.start("hide", scene, "frontier", SEED)
    camera.walk_to_something_that_opens()
    page.keyboard.press("m")
    page.wait_for_timeout(1000)
    page.keyboard.press("h")
    page.locator("[data-phase=hold]").wait_for()
    page.wait_for_timeout(1000)
    camera.take("play_hide", phone=True)
    page.keyboard.press(" ")
    page.locator("[data-phase=placed]").wait_for()
    page.keyboard.press("Enter")
    camera.button("Skip to the end")
    page.locator(".dialog .score").wait_for(timeout=120_000)
    camera.take("play_result", phone=True)


def photograph_study(camera: Photographer) -> None:
    page = camera.page
    camera.go("/study/find-1")
    expect(page.get_by_role("button", name="I agree")).to_be_visible()
    camera.take("study_consent")
    camera.button("I agree")
    page.get_by_label("How old are you?").fill("33")
    page.get_by_role("radio", name="Now and then").check()
    camera.take("study_before")
    camera.button("Continue")
    expect(page.get_by_role("button", name="Start the trials")).to_be_visible()
    camera.take("study_instructions")
    camera.button("Start the trials")
    camera.button("Start the first trial")
    camera.wait(0)
    camera.press("e")
    camera.take("study_trial", phone=True)
    camera.button("Give up")
    expect(page.get_by_role("dialog")).to_be_focused()
    camera.button("Continue")
    page.get_by_role("radio", name="4 of 7").check()
    camera.take("study_after")
    camera.button("Continue")
    expect(page.locator("#code")).to_be_visible()
    camera.take("study_done")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="FloorPlan12")
    parser.add_argument("--out", type=Path, default=Path("docs/screenshots"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        save_records([play("heuristic", "frontier", args.scene, GOAL, seed=1)], folder / "hidden.jsonl")
        (folder / "study.toml").write_text(STUDY.format(scene=args.scene))
        settings = Settings(folder / "play.db", [folder / "study.toml"], [folder / "hidden.jsonl"])
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        with running(settings) as (server, url):
            page = browser.new_page(viewport=DESKTOP, color_scheme="light")
            page.set_default_timeout(60_000)
            photograph(Photographer(page, url, args.out), server, args.scene)
        browser.close()


if __name__ == "__main__":
    main()
