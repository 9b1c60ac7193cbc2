"""Progress in logs: lines now and then."""

from __future__ import annotations

from scrubjay.cli.terminal import ProgressLines, progress_bar


def test_a_log_gets_a_line_at_the_start_every_30_seconds_and_at_the_end():
    now, lines = 0.0, []
    progress = ProgressLines("Games", lines.append, lambda: now)
    for done, seconds, what in ((0, 1, ""), (1, 20, ""), (2, 31, "kitchen"), (3, 40, ""), (4, 61, ""), (10, 70, "")):
        now = seconds
        progress(done, 10, what)
    progress.end()
    assert lines == [
        "Games: 0/10, 0:00:01 elapsed",
        # 2 of 10 in 30 seconds: 8 more take 120.
        "Games: kitchen, 2/10, 0:00:31 elapsed, about 0:02:00 left",
        "Games: 4/10, 0:01:01 elapsed, about 0:01:30 left",
        "Games: 10/10, 0:01:10 elapsed",
    ]
    progress.end()
    assert len(lines) == 4


def test_what_was_there_before_does_not_count_as_speed():
    now, lines = 0.0, []
    progress = ProgressLines("Probes", lines.append, lambda: now)
    progress(1_000, 2_000)
    now = 3_600
    progress(1_100, 2_000)
    assert lines[1] == "Probes: 1,100/2,000, 1:00:00 elapsed, about 9:00:00 left"


def test_without_a_terminal_progress_is_plain_lines(capsys):
    with progress_bar("Scenes") as progress:
        progress(0, 2)
        progress(2, 2)
    assert capsys.readouterr().err.splitlines() == ["Scenes: 0/2, 0:00:00 elapsed", "Scenes: 2/2, 0:00:00 elapsed"]
