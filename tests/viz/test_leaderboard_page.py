"""The leaderboard's page in a browser: sorting within the same data, details of a row."""

import pytest
from browser_helpers import expect, running_browser
from study.leaderboard_studies import STATIC, write_dynamic, write_static

from scrubjay.study.submissions import add_submission, read_submissions
from scrubjay.viz.leaderboard import write_leaderboard


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of two submissions and one on other data."""
    folder = tmp_path_factory.mktemp("board")
    tables = folder / "tables"
    add_submission(write_static(folder / "a", STATIC), tables, "first", licence="Apache-2.0")
    add_submission(write_static(folder / "b", {"random": {"depth": 0.01}}, "e" * 16), tables, "other-data")
    add_submission(write_dynamic(folder / "c"), tables, "first")
    write_leaderboard(folder / "index.html", read_submissions(tables))
    with running_browser("chromium", folder) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith("file:") or problems.append(request.url))
        page.goto(f"file://{folder}/index.html")
        yield page
        assert not problems, "no errors, and nothing from the network"


def names(page, table: str) -> list[str]:
    return page.locator(f"#{table} .toggle").all_inner_texts()


def test_a_column_sorts_best_first_and_other_data_stay_apart(page):
    depth = page.locator("#static th", has_text="Depth").get_by_role("button")
    depth.click()
    # Random on other data has the least loss of all, and is no better for it.
    assert names(page, "static") == ["efficientnet-lite0", "ours@out/run", "random", "random"]
    depth.click()
    assert names(page, "static") == ["random", "ours@out/run", "efficientnet-lite0", "random"]
    page.locator("#static th", has_text="Normals").get_by_role("button").click()
    assert names(page, "static") == ["ours@out/run", "efficientnet-lite0", "random", "random"]
    page.locator("#dynamic th", has_text="Behind books").get_by_role("button").click()
    assert names(page, "dynamic")[:2] == ["DIR (run)", "DIR (4CNN-efficientnet-lite0)"]
    assert names(page, "dynamic")[-1] == "Forward Steps", "it has no result there"


def test_a_rows_details_have_hash_licence_and_command(page):
    row = page.locator("#static tbody", has_text="ours@out/run")
    expect(row.locator(".detail")).to_be_hidden()
    row.locator(".toggle").click()
    expect(row.locator(".detail")).to_be_visible()
    for words in ("2" * 64, "Apache-2.0", "scrubjay", "CPU cores"):
        expect(row.locator(".detail")).to_contain_text(words)
    row.locator(".toggle").click()
    expect(row.locator(".detail")).to_be_hidden()


def test_marks_and_the_papers_figures_are_on_the_page(page):
    assert page.locator("#static .best").count() == 2 and page.locator("#static .close").count() == 2
    expect(page.locator("#static .note")).to_contain_text("Only cells of the same letter are compared")
    expect(page.locator("#dynamic tfoot")).to_contain_text("71.5 %")
    expect(page.locator("#rotation tfoot")).to_contain_text("0.08 ± 0.02")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
