"""A training in stages is one page: its own scores, and curves, steps and feed of every stage."""

from __future__ import annotations

import re
from pathlib import Path

import penstock as ps
from penstock.reporting.run_reports import report_page
from penstock.runs.writing import RunWriter
from reporting.run_folders import begun_run, staged_run
from reporting.test_run_reports import page_of, words_of


def part_of(page: str, anchor: str) -> str:
    return page[page.index(f'<section id="{anchor}">') :].split("</section>")[0]


def test_stages_are_runs_in_the_order_of_their_training(tmp_path: Path) -> None:
    run = ps.Run(staged_run(tmp_path / "mice", ("second", "first", "third")))
    (run.folder / "stages" / "features").mkdir()
    assert [stage.name for stage in run.stages()] == ["second", "first", "third"]
    assert run.stages()[0].stages() == []


def test_the_summary_has_behaviours_and_the_epochs_and_steps_of_all_stages(tmp_path: Path) -> None:
    text = words_of(part_of(page_of(staged_run(tmp_path / "mice")), "summary"))
    assert "F1 without background 0.750 of all stages together" in text
    assert "Epochs 6 flow 1 of 5, frames 2 of 5, sequence 3 of 5; 120 steps" in text
    assert "flow bound by compute; frames bound by data; sequence bound by compute" in text
    assert "Classes 2: background, walk" in text and "Network tiny, from random weights" in text
    assert "NVIDIA A10, 8 cores" in text


def test_every_stage_has_its_curves_under_its_name(tmp_path: Path) -> None:
    curves = part_of(page_of(staged_run(tmp_path / "mice")), "curves")
    assert re.findall("<h3>(.*?)</h3>", curves) == ["Stage flow", "Stage frames", "Stage sequence"]
    assert curves.count("<figcaption><b>Loss</b>") == curves.count("<figcaption><b>Learning rate</b>") == 3
    assert "Walk f1" not in curves  # one value is no curve


def test_scores_are_those_of_the_whole_chain_once(tmp_path: Path) -> None:
    text = words_of(part_of(page_of(staged_run(tmp_path / "mice")), "scores"))
    assert "all stages together f1 without background decides which is best 0.750 walk f1 0.750" in text


def test_every_stage_has_its_verdict_on_the_feed(tmp_path: Path) -> None:
    text = words_of(part_of(page_of(staged_run(tmp_path / "mice")), "feed"))
    assert "Stage flow Bound by compute: the network waited for data in 2.0% of the time." in text
    assert "Stage frames Bound by data: the network waited for it in 50% of the time." in text
    assert "decode 2,400 625" in text


def test_stages_that_are_not_trained_yet_are_no_reason_to_fail(tmp_path: Path) -> None:
    folder = staged_run(tmp_path / "mice", ("flow",), is_whole=False)
    begun_run(folder / "stages" / "frames")
    text = words_of(page_of(folder))
    assert "Scores come after the last stage." in text and "Nothing was logged yet." not in text
    assert "Stage frames Nothing was logged that could be drawn." in text


def test_two_trainings_in_stages_stand_beside_each_other(tmp_path: Path) -> None:
    runs = [ps.Run(staged_run(tmp_path / "one")), ps.Run(staged_run(tmp_path / "two", ("flow", "frames")))]
    page = report_page(runs)
    assert "Epochs 6 3" in words_of(page)
    curves, feeds = part_of(page, "curves"), words_of(part_of(page, "feeds"))
    assert re.findall("<h3>(.*?)</h3>", curves) == ["Stage flow", "Stage frames", "Stage sequence"]
    assert 'aria-label="Val loss by epoch: one from' in curves and "; two from" in curves
    assert "limit bound by data bound by data" in feeds and "limit bound by compute –" in feeds


def test_a_bad_sample_that_stages_met_is_named_once(tmp_path: Path) -> None:
    folder = staged_run(tmp_path / "mice")
    for stage in ps.Run(folder).stages():
        RunWriter(stage.folder).write_bad_samples([{"key": "mouse.mp4#811", "reason": "cut short"}])
    assert words_of(part_of(page_of(folder), "bad-samples")).count("mouse.mp4#811 cut short") == 1


def test_the_classes_of_a_detector_are_named(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "crowns", classes=())
    writer.write_details({"kind": "detection", "classes": {"Birch": {"recall": 0.5}, "Fir": {"recall": 0.4}}})
    assert "Classes 2: Birch, Fir" in words_of(page_of(writer.folder))


def test_losses_are_drawn_and_listed_apart_from_scores(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "crowns")
    for epoch in (1, 2):
        losses = {"val_loss": 0.5, "val_box_loss": 0.3, "val_smoothness": 0.2}
        writer.log_metrics({**losses, "accuracy": 0.9, "val_recall": 0.8}, epoch=epoch, step=epoch)
        parts = {"train_loss": 0.4, "train_box_loss": 0.2, "train_smoothness": 0.1}
        writer.log_metrics(parts, epoch=epoch, step=epoch)
    page = page_of(writer.folder)
    assert re.findall("<figcaption><b>(.*?)</b>", page)[:4] == ["Loss", "Box loss", "Smoothness", "Scores"]
    drawn = dict(re.findall(r'aria-label="([A-Z][a-z ]+) by epoch: ([^"]*)"', page))
    assert "train box loss from" in drawn["Box loss"] and "val box loss from" in drawn["Box loss"]
    assert "loss" not in drawn["Scores"] and "smoothness" not in drawn["Scores"] and "val recall" in drawn["Scores"]
    assert words_of(part_of(page, "scores")).index("val recall") < words_of(part_of(page, "scores")).index("val loss")


def test_what_was_logged_once_is_a_number_and_no_chart_with_a_dot(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "runs" / "short", train={"epochs": 1})
    writer.log_metrics({"train_learning_rate": 0.0003}, epoch=1, step=1)
    writer.log_metrics({"val_loss": 1.5, "accuracy": 0.25}, epoch=1, step=20)
    writer.log_metrics({"train_loss": 2.5}, epoch=1, step=20)
    curves = part_of(page_of(writer.folder), "curves")
    assert "<figure" not in curves
    text = words_of(curves)
    assert "Logged once: train learning rate 0.0003, val loss 1.500, accuracy 0.2500, train loss 2.500." in text


def test_a_page_shows_no_folders_of_its_author(tmp_path: Path) -> None:
    home = "/home/somebody/secret place"
    folder = staged_run(tmp_path / "runs" / "mice")
    settings = (folder / "settings.yaml").read_text()
    (folder / "settings.yaml").write_text(settings.replace("path: ''", f"path: {home}/study/mice.pack", 1))
    writer = RunWriter(folder)
    writer.say("begins with /home/somebody/runs/mice: 287 of 287 tensors taken.")
    writer.write_environment({"command": ["/home/somebody/bin/penstock", "train", f"{home}/mice.yaml"]})
    page = page_of(folder)
    assert "somebody" not in page and "secret place/study" not in page and str(tmp_path) not in page
    text = words_of(page)
    assert "…/study/mice.pack" in text and "begins with …/runs/mice: 287" in text and "…/bin/penstock train" in text


def test_behaviours_and_ethograms_stand_before_the_curves(tmp_path: Path) -> None:
    folder = staged_run(tmp_path / "mice")
    RunWriter(folder).write_details({"kind": "behaviour", "behaviours": {"walk": {"frames": 3, "f1": 0.5}}})
    page = page_of(folder)
    assert page.index('<section id="behaviours">') < page.index('<section id="curves">')
