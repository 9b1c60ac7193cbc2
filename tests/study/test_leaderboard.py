"""The leaderboard: what it takes, refuses and compares, and that the documentation shows the committed tables."""

import json
import sys
from pathlib import Path

import pytest
from study.leaderboard_studies import STATIC, write_dynamic, write_static

from scrubjay.cli.main import main
from scrubjay.errors import DataError
from scrubjay.study.leaderboard import make_tables
from scrubjay.study.submissions import add_submission, read_submissions
from scrubjay.viz.leaderboard import BEGIN, END, leaderboard_markdown, leaderboard_text, update_document

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "leaderboard"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def board(tables: Path) -> dict[str, dict[tuple[str, str], dict[str, str]]]:
    """By table, and by name and submission: each cell's value, with * where best, ~ where close, and its letter."""
    return {
        table.key: {
            (entry.name, entry.submission): {
                column.name: column.number(cell.value) + "*" * cell.is_best + "~" * cell.is_close
                + table.letter(column, cell)
                for column in table.columns
                if (cell := entry.cells.get(column.name))
            }
            for entry in table.entries
        }
        for table in make_tables(read_submissions(tables))
    }  # fmt: skip


def test_the_best_is_marked_and_so_is_what_overlaps_it(tmp_path):
    write_static(tmp_path / "study", STATIC)
    target = add_submission(tmp_path / "study", tmp_path / "tables", "first")
    assert target == tmp_path / "tables" / "first" / "static"
    found = board(tmp_path / "tables")
    assert found["static"] == {
        ("efficientnet-lite0", "first"): {"depth": "0.500*", "normals": "0.400~"},
        ("ours@out/run", "first"): {"depth": "0.600~", "normals": "0.350*"},
        ("random", "first"): {"depth": "0.900", "normals": "0.800"},
    }
    # Alone in its table: nothing to be better than.
    assert found["static-skips"] == {("random", "first"): {"depth": "0.900", "normals": "0.800"}}
    assert set(found) == {"static", "static-skips"}


def test_other_data_and_trials_are_never_compared(tmp_path):
    for name, losses, data, scale in (
        ("a", {"random": {"depth": 0.9}, "ours@out/run": {"depth": 0.6}}, "a" * 16, "paper"),
        ("b", {"random": {"depth": 0.1, "normals": 0.1}}, "b" * 16, "paper"),
        ("c", {"random": {"depth": 0.01}}, "a" * 16, "mini"),
    ):
        write_static(tmp_path / name, losses, data, scale)
        add_submission(tmp_path / name, tmp_path / "tables", allow_mini=scale == "mini")
    (table, _) = make_tables(read_submissions(tmp_path / "tables"))
    assert board(tmp_path / "tables")["static"] == {
        ("ours@out/run", "a"): {"depth": "0.600*a"},
        ("random", "a"): {"depth": "0.900a"},
        ("random", "b"): {"depth": "0.100b", "normals": "0.100b"},
        ("random", "c"): {"depth": "0.010c"},
    }
    assert table.is_mixed and [line[:9] for line in table.legend] == ["a: data a", "b: data b", "c: data a"]
    assert "38,055 images" in table.legend[0] and "a trial" in table.legend[2]
    assert "Only cells of the same letter are compared" in leaderboard_markdown(read_submissions(tmp_path / "tables"))


def test_the_largest_size_of_dynamic_experiments_counts_and_rotation_has_a_table_with_the_odds(tmp_path):
    add_submission(write_dynamic(tmp_path / "study"), tmp_path / "tables", "agent")
    found = board(tmp_path / "tables")
    assert list(found) == ["dynamic", "rotation"]
    assert found["dynamic"]["DIR (run)", "agent"] == {name: "70.0*" for name in ("contained", "tracking", "space")}
    assert found["dynamic"]["DIR (4CNN-efficientnet-lite0)", "agent"]["tracking"] == "69.0~"
    assert found["dynamic"]["Forward Steps", "agent"] == {"contained": "50.0"}
    # The odds at the first step.
    assert found["rotation"]["DIR (run)", "agent"] == {"rotation": "70.0*", "odds": "0.100"}
    (dynamic, rotation) = make_tables(read_submissions(tmp_path / "tables"))
    assert [column.printed for column in dynamic.columns] == ["71.5 %", "64 %", "84.92 ± 2.27 %"]
    assert rotation.columns[1].printed == "0.08 ± 0.02"
    assert dynamic.entries[0].chance == {name: 0.5 for name in ("contained", "tracking", "space")}


def test_the_same_weights_on_the_same_data_have_one_row_that_says_who_measured_them_again(tmp_path):
    write_static(tmp_path / "a", STATIC)
    again = {"random": {"depth": 0.9}, "ours@out/run": {"depth": 0.7}, "efficientnet-lite0": {"depth": 0.504}}
    # Another run in a folder of the same name: other weights, another row.
    write_static(tmp_path / "b", again, digests={"ours@out/run": "5" * 64})
    for name in "ab":
        add_submission(tmp_path / name, tmp_path / "tables")
    assert sorted(board(tmp_path / "tables")["static"]) == [
        ("efficientnet-lite0", "a"), ("ours@out/run", "a"), ("ours@out/run", "b"), ("random", "a"),
    ]  # fmt: skip
    table = make_tables(read_submissions(tmp_path / "tables"))[0]
    said = {entry.name: entry.again for entry in table.entries if entry.submission == "a"}
    assert said["random"] == ("b: the same values",)
    assert said["efficientnet-lite0"] == ("b: values that differ by 0.004 at most",) and not said["ours@out/run"]


def test_rotations_own_sequences_keep_agents_apart_there_alone(tmp_path):
    add_submission(write_dynamic(tmp_path / "a"), tmp_path / "tables", "a")
    add_submission(write_dynamic(tmp_path / "b", 0.72, rotation="s" * 16), tmp_path / "tables", "b")
    found = board(tmp_path / "tables")
    assert found["rotation"]["DIR (run)", "a"] == {"rotation": "70.0*a", "odds": "0.100a"}
    assert found["rotation"]["DIR (run)", "b"] == {"rotation": "72.0*b", "odds": "0.100b"}
    assert "DIR (run)" in {name for name, _ in found["dynamic"]} and len(found["dynamic"]) == 6


def test_a_source_without_the_largest_size_has_no_row(tmp_path):
    write_dynamic(tmp_path / "study")
    table = tmp_path / "study" / "dynamic.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(line for line in lines if ",Forward Steps,3200," not in line))
    add_submission(tmp_path / "study", tmp_path / "tables", "a")
    assert "Forward Steps" not in {name for name, _ in board(tmp_path / "tables")["dynamic"]}


def test_labels_and_a_licence_stand_in_the_tables(tmp_path):
    write_static(tmp_path / "study", STATIC)
    labels = {"ours@out/run": "Scrubjay"}
    add_submission(tmp_path / "study", tmp_path / "tables", "s", labels=labels, licence="Apache-2.0")
    text = leaderboard_markdown(read_submissions(tmp_path / "tables"))
    assert f"| `Scrubjay` | s | Apache-2.0 | `{'2' * 16}` |" in text and "ours@out/run" not in text
    assert "| `random` | s | none |" in text and "substitute for the paper's ImageNet encoder" in text
    with pytest.raises(DataError, match="has no agent or encoder 'nobody' to label"):
        add_submission(tmp_path / "study", tmp_path / "tables", "other", labels={"nobody": "x"})


def test_a_duplicate_is_refused_unless_it_replaces(tmp_path):
    study, tables = write_static(tmp_path / "study", STATIC), tmp_path / "tables"
    add_submission(study, tables, "one")
    before = files(tables)
    with pytest.raises(DataError, match="is there already; use --replace"):
        add_submission(study, tables, "one")
    with pytest.raises(DataError, match="on the leaderboard already, as one"):
        add_submission(study, tables, "two")
    assert files(tables) == before
    write_static(study, {"random": {"depth": 0.2}})
    add_submission(study, tables, "one", replace=True)
    assert board(tables)["static"] == {("random", "one"): {"depth": "0.200"}}
    # The same name's other study is another thing.
    add_submission(write_dynamic(tmp_path / "dynamic"), tables, "one")
    assert set(board(tables)) == {"static", "static-skips", "dynamic", "rotation"}
    assert {path.name for path in (tables / "one").iterdir()} == {"static", "dynamic"}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("static.csv", "depth,0.9,0.8,1,", "depth,nan,0.8,1,", "line 2: loss, low and high must be finite"),
        ("static.csv", "depth,0.9,0.8,1,", "depth,,0.8,1,", "line 2: loss, low and high must be finite"),
        ("static.csv", "depth,0.9,0.8,1,", "depth,0.9,0.8,inf,", "line 2: loss, low and high must be finite"),
        ("static.csv", "depth,0.9,0.8,1,", "depth,0.1,0.8,1,", "line 2: loss 0.1 is outside of its interval"),
        ("static.csv", "depth,0.9", "taste,0.9", "line 2: not a result of the static study: random, 7 x 7, taste"),
        ("static.csv", "normals,0.8", "depth,0.8", "line 3: a second result of random, 7 x 7, depth"),
        ("static.csv", "loss,low", "lost,low", "lacks the columns loss"),
        ("static.csv", "random,", "nobody,", "encoders.json: has no hash of nobody"),
        ("encoders.json", "0" * 64, "0" * 63, "encoders.json: has no hash of random"),
        ("encoders.json", "1234567", '"many"', "the parameters of random must be a number"),
        ("encoders.json", "licence", "license", "an encoder lacks licence"),
        ("study.json", '"data"', '"date"', "study.json: has no digest of the data"),
        ("study.json", '"paper"', '"mini"', "a trial at scale mini, not a full study"),
        ("study.json", '"version": 1', '"version": 2', "not the record of a study"),
        ("study.json", '"static"', '"natural"', "the natural study has no leaderboard"),
        ("study.json", '"versions"', '"verses"', "does not say which command and versions"),
    ],
)  # fmt: skip
def test_edited_studies_are_one_sentence_and_change_nothing(tmp_path, file, old, new, words):
    write_static(tmp_path / "study", STATIC)
    edit(tmp_path / "study" / file, old, new)
    with pytest.raises(DataError, match=words) as error:
        add_submission(tmp_path / "study", tmp_path / "tables")
    assert "\n" not in str(error.value) and not (tmp_path / "tables").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("dynamic.csv", "contained,DIR (run),50,,0.6", "contained,DIR (run),50,,1.6", "outside of its interval"),
        ("dynamic.csv", "contained", "contents", "line 2: not a result of the dynamic study: contents"),
        ("odds.csv", "0.05,0.15", "nan,0.15", "odds.csv, line 2: difference, low and high must be finite"),
        ("agents.json", "3" * 64, "", "agents.json: has no hash of run"),
        ("study.json", '"tracking"', '"tracks"', "has no digest of the data; run the study's command again"),
    ],
)
def test_edited_dynamic_studies_are_refused_too(tmp_path, file, old, new, words):
    write_dynamic(tmp_path / "study")
    edit(tmp_path / "study" / file, old, new)
    with pytest.raises(DataError, match=words.replace("(", r"\(")):
        add_submission(tmp_path / "study", tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_committed_tables_that_were_edited_are_named(tmp_path):
    write_static(tmp_path / "study", STATIC)
    target = add_submission(tmp_path / "study", tmp_path / "tables", "one")
    table = target / "static.csv"
    table.write_bytes(table.read_bytes().replace(b"\n", b"\r\n"))
    assert board(tmp_path / "tables"), "line endings do not matter"
    edit(table, "0.9,0.8,1", "0.9,0.8,2")
    with pytest.raises(DataError, match=r"static.csv: was edited; add the study again with --replace"):
        read_submissions(tmp_path / "tables")
    table.unlink()
    with pytest.raises(DataError, match=r"lacks static.csv"):
        read_submissions(tmp_path / "tables")
    (target / "submission.json").write_text("{}")
    with pytest.raises(DataError, match="not a submission"):
        read_submissions(tmp_path / "tables")


def run(monkeypatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["scrubjay", "leaderboard", *words])
    main()


def test_three_lines_add_a_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_static(Path("study"), STATIC)
    run(monkeypatch, "add", "study", "--as", "mine", "--licence", "MIT", "--labels", "ours@out/run=My encoder")
    assert capsys.readouterr().out.strip() == "results/leaderboard/mine/static"
    run(monkeypatch, "show")
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "out/leaderboard/index.html"
    assert "My encoder (mine)" in printed and "0.350*" in printed
    assert "My encoder" in Path("out/leaderboard/index.html").read_text()
    Path("page.md").write_text(f"Before\n{BEGIN}\nold\n{END}\nafter\n")
    run(monkeypatch, "show", "--update", "page.md")
    assert capsys.readouterr().out.strip() == "page.md"
    run(monkeypatch, "show", "--markdown")
    markdown = capsys.readouterr().out
    assert Path("page.md").read_text() == f"Before\n{BEGIN}\n\n{markdown}\n{END}\nafter\n"
    assert "**0.350**<br>0.250 to 0.450" in markdown and "≈ 0.400<br>0.300 to 0.500" in markdown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "nowhere"], "nowhere: no such folder"),
        (["add", "empty"], "not a study: it lacks study.json"),
        (["add", "empty", "--as", "../up"], "a submission's name has letters, digits"),
        (["add", "empty", "--labels", "x"], "labels: NAME=LABEL"),
        (["show"], "results/leaderboard: no such folder"),
        (["show", "--tables", "empty", "--update", "page.md"], "page.md: has no lines"),
    ],
)
def test_wrong_requests_are_one_sentence(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "page.md").write_text("A page.")
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, *words)
    assert stop.value.code == 2 and message in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "page.md"}


def test_a_board_without_submissions_says_so(tmp_path):
    (tmp_path / "README.md").write_text("What this is.")
    assert leaderboard_markdown(read_submissions(tmp_path)) == "No submissions yet.\n"
    assert leaderboard_text([]) == "No submissions yet.\n"


def test_committed_submissions_are_full_studies_and_the_documentation_shows_them(tmp_path):
    submissions = read_submissions(COMMITTED)
    assert {each.scale for each in submissions} <= {"paper"}
    page = ROOT / "docs" / "leaderboard.md"
    copy = tmp_path / "page.md"
    copy.write_text(page.read_text())
    update_document(copy, submissions)
    assert copy.read_text() == page.read_text(), "run `scrubjay leaderboard show --update docs/leaderboard.md`"
    assert all(json.loads((each.results.folder / "submission.json").read_text())["files"] for each in submissions)
