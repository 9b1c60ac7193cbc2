"""The report of all studies: what it reads, what it puts beside the paper's figures, what it refuses."""

import pytest

from scrubjay.errors import DataError
from scrubjay.study.report import beside_the_paper, read_studies
from scrubjay.viz.study_report import write_report


def write(path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def studies(tmp_path):
    """Tables as the studies write them, in a folder for each; numbers are made up."""
    write(
        tmp_path / "static" / "static.csv",
        "encoder,decoder,task,loss,low,high,ratio,ratio_low,ratio_high,p,significant,note,control,new\n"
        "ours@run,7 x 7,depth,0.4,0.3,0.5,0.8,0.7,0.9,0.001,True,,efficientnet-lite0,1\n"
        "efficientnet-lite0,7 x 7,depth,0.5,0.4,0.6,1,1,1,,False,,efficientnet-lite0,1\n"
        "ours@run,7 x 7,normals,0.6,0.5,0.7,1.2,1.1,1.3,0.001,True,log link,efficientnet-lite0,1\n"
        "efficientnet-lite0,7 x 7,normals,0.5,0.4,0.6,1,1,1,,False,log link,efficientnet-lite0,1\n",
    )
    write(
        tmp_path / "natural" / "natural.csv",
        "encoder,decoder,task,metric,value,low,high\nrandom,7 x 7,depth,absolute error,0.7,0.6,0.8\n",
    )
    write(
        tmp_path / "dynamic" / "dynamic.csv",
        "experiment,source,size,step,accuracy,low,high\n"
        "contained,DIR run,50,,0.99,0.98,1\ncontained,DIR run,400,,0.734,0.72,0.75\ncontained,SIR,400,,0.6,0.5,0.7\n"
        "rotation,DIR run,400,,0.7,0.6,0.8\nrotation,DIR run,400,5,0.66,0.6,0.8\n",
    )
    write(
        tmp_path / "dynamic" / "odds.csv",
        "source,step,split,pairs,difference,low,high\nrun,1,all,9,0.11,0.05,0.17\nrun,2,all,9,0.3,0.2,0.4\n",
    )
    return tmp_path


def test_ours_stand_beside_the_printed_figures(studies, tmp_path):
    lines = {each.printed.result: each.ours for each in beside_the_paper(read_studies([studies]))}
    (static,) = lines["Synthetic images, seven tasks"]
    assert static == "ours@run against efficientnet-lite0, 7 x 7: significantly better on 1 of 2 tasks, worse on 1"
    # The largest size alone, and the best first.
    contained = lines["Contained in or behind a receptacle"]
    assert contained == ["DIR run: 73.4 % (72.0 % to 75.0 %)", "SIR: 60.0 % (50.0 % to 70.0 %)"]
    assert lines["Was it seen before turning away"] == ["DIR run: 70.0 % (60.0 % to 80.0 %)"]
    assert lines["Turning back to what vanished, log-odds"] == ["run: 0.110 (0.050 to 0.170)"]
    assert lines["Free space"] == []


def test_the_page_has_every_table_with_intervals_and_says_who_is_a_substitute(studies, tmp_path):
    write_report(tmp_path / "pages" / "report.html", read_studies([studies / "static", studies]))
    page = (tmp_path / "pages" / "report.html").read_text()
    for text in ("71.5 %", "84.92 ± 2.27 %", "0.600 to 0.800", "66.0 %", "0.110", "no results given", "Not recorded"):
        assert text in page, text
    # In both sections of the study that was given twice: the table and the note.
    assert page.count("substitute for the paper&#39;s ImageNet encoder") == 4
    assert page.count("data:image/png;base64,") == 2 and page.count("normals: log link") == 2


def test_a_study_that_is_missing_is_left_out(studies, tmp_path):
    write_report(tmp_path / "report.html", read_studies([studies / "natural"]))
    page = (tmp_path / "report.html").read_text()
    assert page.count("no results given") == 6 and "absolute error" in page


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("static.csv", "a,b\n1,2\n", "lacks the columns encoder, decoder"),
        ("dynamic.csv", "experiment,source,size,accuracy,low,high\n", "has no rows"),
        ("dynamic.csv", "experiment,source,size,accuracy,low,high\na,b,9,much,0,1\n", "accuracy must be a number"),
        ("natural.csv", "encoder,decoder,task,metric,value,low,high\na,b\n", "another number of cells"),
        ("odds.csv", "\0", "odds.csv"),
        ("study.json", "{}", "not the record of a study"),
        ("encoders.json", '[{"name": "random"}]', "an encoder lacks network"),
        ("encoders.json", "3", "not descriptions of encoders"),
    ],
)
def test_broken_files_get_one_clear_sentence(studies, name, text, words):
    write(studies / "dynamic" / name, text)
    with pytest.raises(DataError, match=words) as error:
        read_studies([studies])
    assert "\n" not in str(error.value)


def test_folders_without_results_get_one_clear_sentence(tmp_path):
    with pytest.raises(DataError, match="nowhere: no such folder"):
        read_studies([tmp_path / "nowhere"])
    with pytest.raises(DataError, match="no results of a study"):
        read_studies([tmp_path])
