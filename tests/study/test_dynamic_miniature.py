"""The miniature of all four dynamic experiments, as the command makes it: data, features, probes, tables and page."""

from __future__ import annotations

import csv
import sys

from scrubjay.cli.main import main
from scrubjay.study.dynamic_experiments import EXPERIMENTS


def test_the_command_runs_all_four_experiments_and_again_at_once(tmp_path, monkeypatch, capsys):
    command = ["scrubjay", "study", "dynamic", "--agents", "random", "--scale", "mini", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    main()
    assert capsys.readouterr().out.strip() == str(tmp_path / "index.html")
    with open(tmp_path / "dynamic.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["experiment"] for row in rows} == set(EXPERIMENTS)
    assert {"DIR (random)", "DIR (Rand.)", "SIR (random)", "DIR (4CNN-random)", "Forward Steps"} < {
        row["source"] for row in rows
    }
    assert (tmp_path / "odds.csv").exists()
    page = (tmp_path / "index.html").read_text()
    for printed in ("71.5 %", "63.4 %", "64 %", "59.6 %", "84.92 ± 2.27 %", "0.08 ± 0.02"):
        assert printed in page
    for goal in ("80.0 %", "75.0 %", "92.0 %", "0.2"):
        assert f'<td class="number">{goal}</td>' in page
    assert page.count('figcaption class="answer"') > 4 * 3, "clips of each experiment"

    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")}
    main()
    assert {path: path.read_bytes() for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npy")} == files, "nothing is computed again"
