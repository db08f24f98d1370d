"""A page says what is in the Run, whatever the Run looks like."""

from __future__ import annotations

import html
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.errors import DataError, OptionError
from penstock.reporting.run_reports import SECTIONS, report_page
from reporting import run_folders
from reporting.run_folders import begun_run, class_details, confusion_of, finished_run, interrupted_run, log_feed

HOSTILE = ("<script>alert(1)</script>", '"q" & \'s\' onload="x"', "日本語 ünïcödé \u202e", "long" * 100)


def page_of(*folders: Path) -> str:
    return report_page([ps.Run(folder) for folder in folders])


def words_of(page: str) -> str:
    """The page as a reader sees it."""
    body = re.sub(r"<(script|style)>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


# What is on it


def test_a_page_has_every_section(tmp_path: Path) -> None:
    classes = class_details(run_folders.CLASSES, confusion_of(3, np.random.default_rng(0)))
    page = page_of(finished_run(tmp_path / "all", details={**classes, **run_folders.behaviour_details()}))
    found = re.findall(r"<h2>(.*?)</h2>", page)
    assert found == [title for title, _ in SECTIONS]
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{anchor}"' in page


def test_the_summary_has_score_time_epochs_feed_and_hardware(tmp_path: Path) -> None:
    run = ps.Run(finished_run(tmp_path / "pets"))
    text = words_of(page_of(run.folder))
    assert f"Accuracy {run.scores()['accuracy']:.3f} best, epoch" in text
    assert "31 min 8 s" in text and "began 4 Mar 2026, 10:00 UTC" in text
    assert "8 of 8 160 steps" in text
    assert "bound by compute: 4.0% waiting for data" in text
    assert "NVIDIA A10, 8 cores" in text and "pets.pack" in text and "3: cat, dog, rabbit" in text
    assert "finished" in text


@pytest.mark.parametrize("trained", ["shapes_run", "crowns_run", "mice_run"])
def test_the_page_of_a_real_training_has_its_scores(trained: str, request: pytest.FixtureRequest) -> None:
    run: ps.Run = request.getfixturevalue(trained)
    text = words_of(report_page([run]))
    assert run.scores() and "finished" in text
    for name, value in run.scores("best").items():
        assert math.isnan(value) or f"{value:.3f}" in text, name


def test_scores_are_those_of_the_best_and_the_last_validation(tmp_path: Path) -> None:
    run = ps.Run(finished_run(tmp_path / "pets", epochs=3))
    text = words_of(page_of(run.folder))
    for name, value in run.scores("best").items():
        last = run.scores("last")[name]
        decides = " decides which is best" if name == "accuracy" else ""
        assert f"{name.replace('_', ' ')}{decides} {value:.3f} {last:.3f}" in text
    assert "all 3 validations" in text


def test_curves_have_losses_scores_and_learning_rate_by_epoch(tmp_path: Path) -> None:
    page = page_of(finished_run(tmp_path / "pets", epochs=4))
    assert re.findall(r"<figcaption><b>(.*?)</b>", page)[:3] == ["Loss", "Scores", "Learning rate"]
    assert page.count('role="img" aria-label="Loss by epoch: train loss from') == 1
    assert "<title>epoch 2\ntrain loss" in page


def test_the_confusion_matrix_has_counts_and_the_most_confused_pairs(tmp_path: Path) -> None:
    counts = np.array([[50, 3, 0], [0, 40, 0], [7, 0, 30]])
    details = class_details(run_folders.CLASSES, counts)
    page = page_of(finished_run(tmp_path / "pets", details=details))
    assert 'title="rabbit answered as cat: 7 (19%)"' in page
    assert "of its class rabbit → cat 7 19% cat → dog 3 5.7% Classes" in words_of(page)


def test_classes_stand_with_the_weakest_first(tmp_path: Path) -> None:
    counts = np.array([[50, 0, 0], [20, 20, 0], [0, 5, 30]])
    details = class_details(run_folders.CLASSES, counts)
    text = words_of(page_of(finished_run(tmp_path / "pets", details=details)))
    assert re.findall(r"(cat|dog|rabbit) \d+ \d\.\d+ \d\.\d+ \d\.\d+ 0.990", text) == ["dog", "cat", "rabbit"]


def test_wrong_samples_are_pictures_with_truth_and_answer(tmp_path: Path) -> None:
    page = page_of(finished_run(tmp_path / "pets"))
    assert page.count('<img src="data:image/jpeg;base64,') == 12
    assert 'alt="cat/photo_000.jpg: cat, answered as dog"' in page
    text = words_of(page)
    assert "cat → dog 95% cat/photo_000.jpg loss 4" in text
    assert "cat ✓ 68% cat/photo_009.jpg" in text


def test_settings_that_differ_from_defaults_stand_first_and_tell_what_auto_became(tmp_path: Path) -> None:
    page = page_of(finished_run(tmp_path / "pets", train={"optimizer": "sgd"}))
    settings = words_of(page[page.index('<section id="settings">') :])
    changed, same = settings.split("at the default", 1)
    assert "train. optimizer sgd adamw" in changed and "model. weights imagenet none" in changed
    assert "train. schedule" not in changed and "train. schedule cosine cosine" in same
    assert "train. batch_size auto → 64 auto" in same
    assert "train.on_device 32" in changed
    assert "train.batch_size 64" not in changed


def test_the_feed_has_five_hops_and_its_limit(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    log_feed(writer, [100.0], waiting_share=0.5)
    text = words_of(page_of(writer.folder))
    assert "Bound by data: the network waited for it in 50% of the time. " in text
    assert "Without waiting for data, training would be 2.0 × faster." in text
    assert "decode 4,000 625 1.600 81% 0.800 –" in text
    assert "read 4,000 100,000 0.010 0.5% 0.005 90.0 KB" in text


def test_the_feed_of_a_run_that_was_gone_on_with_is_the_sum(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    log_feed(writer, [100.0, 50.0], waiting_share=0.02)
    assert "decode 6,000 625" in words_of(page_of(writer.folder))


def test_bad_samples_stand_with_their_reasons(tmp_path: Path) -> None:
    assert "dog/broken.jpg the JPEG ends after 812 bytes" in words_of(page_of(finished_run(tmp_path / "pets")))
    writer = begun_run(tmp_path / "many")
    writer.write_bad_samples([{"index": number, "reason": "cut short"} for number in range(250)])
    text = words_of(page_of(writer.folder))
    assert "250 samples could not be read" in text and "150 more are in samples.json" in text


def test_environment_and_log_are_there(tmp_path: Path) -> None:
    text = words_of(page_of(finished_run(tmp_path / "pets")))
    assert "penstock train pets.yaml" in text and "torch 2.14.0" in text
    assert "1,200 samples for training, 300 for validation." in text


# Runs that are not whole


def test_a_run_without_anything_logged_says_so(tmp_path: Path) -> None:
    text = words_of(page_of(begun_run(tmp_path / "pets").folder))
    assert "Nothing was logged yet." in text and "Nothing was logged that could be drawn." in text
    assert "Nothing was logged of the feed." in text


def test_an_empty_file_of_metrics_is_nothing_logged(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    (writer.folder / "metrics.jsonl").write_text("")
    (writer.folder / "feed.jsonl").write_text("")
    assert "Nothing was logged yet." in words_of(page_of(writer.folder))


def test_a_run_that_was_interrupted_after_one_step_is_told_in_steps(tmp_path: Path) -> None:
    page = page_of(interrupted_run(tmp_path / "pets"))
    text = words_of(page)
    assert "This training was interrupted" in text and "There was no validation, so there are no scores." in text
    assert "After step 1: train step loss 1.200, train learning rate 0.001000." in text


def test_a_run_without_validation_has_its_training_loss(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    for epoch in (1, 2):
        writer.log_metrics({"train_loss": 1.0 / epoch}, epoch=epoch, step=20 * epoch)
    page = page_of(writer.folder)
    assert 'aria-label="Loss by epoch: train loss from 1 to 0.5000"' in page
    assert "There was no validation, so there are no scores." in words_of(page)


def test_losses_that_are_no_numbers_are_said(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    for epoch, loss in ((1, 0.5), (2, math.nan)):
        writer.log_metrics({"val_loss": loss, "accuracy": loss}, epoch=epoch, step=20 * epoch)
    writer.write_environment({"outcome": "failed: the loss is not a number at step 31 <samples>"})
    text = words_of(page_of(writer.folder))
    assert "val loss was not a number at epoch 2" in text
    assert "This training failed: the loss is not a number at step 31 <samples>" in text
    assert "accuracy decides which is best 0.500 –" in text


@pytest.mark.parametrize(
    "details",
    [
        {"kind": "classification"},
        {"kind": "classification", "classes": ["a", "b"], "confusion": [[1, 2]], "per_class": [None, 3]},
        {"kind": "classification", "classes": ["a", "b"], "confusion": [[1, None], ["x", 2]], "per_class": {}},
        {"kind": "classification", "classes": ["a"], "confusion": [[-1]], "per_class": [{}]},
        {"kind": "classification", "classes": [], "confusion": [], "per_class": [{"class": "a"}]},
        {"kind": "detection", "confusion": 3},
        {"classes": 5},
    ],
)
def test_details_of_any_form_are_no_reason_to_fail(tmp_path: Path, details: dict[str, Any]) -> None:
    writer = begun_run(tmp_path / "pets")
    writer.write_details(details)
    assert "Environment" in page_of(writer.folder)


def test_files_that_hold_other_values_are_no_reason_to_fail(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "pets")
    (folder / "worst.json").write_text(json.dumps([{"truth": None, "loss": "x", "thumbnail": 3}, 5, {}]))
    (folder / "samples.json").write_text(json.dumps({"a": 1}))
    (folder / "environment.json").write_text(json.dumps({"devices": "cpu", "seconds": "long", "started": 5}))
    (folder / "feed.jsonl").write_text(json.dumps({"batches": "x", "hops": {"read": 3}, "samples": 1e999}) + "\n")
    lines = [{"epoch": None, "val_loss": "x"}, {"step": "y", "f1": [1]}, {"train_loss": 10**400}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "no picture" in words_of(page_of(folder))


def test_a_damaged_file_is_said_by_name_and_line(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "pets")
    (folder / "metrics.jsonl").write_text('{"epoch": 1}\n{"epo\n{"epoch": 2}\n')
    with pytest.raises(DataError, match=r"metrics.jsonl line 2"):
        ps.report(folder)
    assert not (folder / "report.html").exists()


def test_only_pictures_of_the_run_are_shown(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "pets")
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"\xff\xd8\xff secret")
    (folder / "text.jpg").write_text("no picture at all")
    (folder / "link.jpg").symlink_to(secret)
    names = ["../secret.jpg", str(secret), "text.jpg", "link.jpg", "thumbs", "a\0b", "gone.jpg"]
    (folder / "worst.json").write_text(json.dumps([{"key": "k", "thumbnail": name} for name in names]))
    page = page_of(folder)
    assert page.count("no picture") == len(names) and "data:image/jpeg" not in page


# Names that are not plain


def test_hostile_names_are_shown_as_text_everywhere(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "<b>pets", classes=HOSTILE)
    writer = run_folders.RunWriter(folder)
    writer.write_bad_samples([{"key": name, "reason": name} for name in HOSTILE])
    writer.write_environment({"command": list(HOSTILE), "outcome": HOSTILE[0], "system": HOSTILE[1]})
    writer.log_metrics({"val_loss": 0.1, **dict.fromkeys(HOSTILE, 0.5)}, epoch=9, step=180)
    writer.say("</pre><script>alert(2)</script>")
    other = finished_run(tmp_path / "other", classes=HOSTILE, epochs=1)
    for page in (page_of(folder), page_of(folder, other)):
        assert page.count("<script>") == 1 and "<b>pets" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert 'onload="x"' not in page


def test_two_hundred_classes_are_a_picture_and_a_page_of_small_size(tmp_path: Path) -> None:
    names = [f"species {number}" for number in range(200)]
    page = page_of(finished_run(tmp_path / "pets", classes=names))
    assert page.count("data:image/png;base64,") == 1 and "176 more classes" in page
    assert len(page) < 400_000


def test_two_hundred_scores_are_a_table_and_few_lines(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    scores = {f"class {number}_recall": number / 200 for number in range(200)}
    for epoch in (1, 2):
        writer.log_metrics({"val_loss": 0.5, "accuracy": 0.9, **scores}, epoch=epoch, step=epoch)
    page = page_of(writer.folder)
    assert page.count('<path class="line') < 12
    assert "class 199 recall" in page and "Not drawn: class 5 recall" in page


def test_a_long_training_makes_no_large_page(tmp_path: Path) -> None:
    writer = begun_run(tmp_path / "pets")
    lines = [{"epoch": 1, "step": step, "train_step_loss": 1 / step} for step in range(1, 50_001)]
    (writer.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(page_of(writer.folder)) < 100_000


# The file


def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    folder, other = finished_run(tmp_path / "pets"), finished_run(tmp_path / "others")
    for page in (page_of(folder), page_of(folder, other)):
        assert not re.search(
            r"https?:|//[a-z]|url\(|@import|<link|<iframe", re.sub(r"(base64,|sha256-)[^\"]*", "", page)
        )
        assert all(source.startswith("data:image/") for source in re.findall(r'src="([^"]*)"', page))
        assert "default-src 'none'" in html.unescape(page)


def test_report_writes_into_the_first_run_and_gives_the_path(tmp_path: Path) -> None:
    first, second = finished_run(tmp_path / "a"), finished_run(tmp_path / "b")
    assert ps.report(first) == first / "report.html"
    one = (first / "report.html").read_bytes()
    assert ps.report([str(first), ps.Run(second)]) == first / "report.html"
    assert (first / "report.html").read_bytes() != one
    assert ps.report([first, first / "." / "checkpoints" / ".."]) == first / "report.html"
    assert (first / "report.html").read_bytes() == one, "the same Run gives the same page"


def test_the_folder_of_the_page_is_made(tmp_path: Path) -> None:
    path = ps.report(finished_run(tmp_path / "pets"), str(tmp_path / "new" / "pages" / "pets.html"))
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in path.parent.iterdir()] == ["pets.html"]


def test_a_page_takes_no_other_files_place(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "pets")
    with pytest.raises(OptionError, match="is a folder. Name the page, such as"):
        ps.report(folder, tmp_path)
    with pytest.raises(OptionError, match="must end in .html"):
        ps.report(folder, folder / "settings.yaml")
    with pytest.raises(OptionError, match="needs a Run"):
        ps.report([])
    with pytest.raises(DataError, match="there is no such folder"):
        ps.report([folder, tmp_path / "gone"])


def test_reporting_needs_no_torch(tmp_path: Path) -> None:
    folder = finished_run(tmp_path / "pets")
    code = "import sys, penstock as ps; ps.report(sys.argv[1]); print({'torch', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Several


@pytest.fixture
def several(tmp_path: Path) -> tuple[Path, Path, Path]:
    first = finished_run(tmp_path / "plain", epochs=4)
    second = finished_run(tmp_path / "sgd", epochs=6, seed=1, train={"optimizer": "sgd"})
    return first, second, interrupted_run(tmp_path / "stopped")


def test_several_runs_have_a_column_each(several: tuple[Path, ...]) -> None:
    text = words_of(page_of(*several))
    assert "plain · sgd · stopped" in text and "classification, 3 runs" in text
    assert "Outcome finished finished interrupted" in text
    assert "Epochs 4 6 1" in text


def test_scores_of_several_runs_mark_the_best(several: tuple[Path, ...]) -> None:
    page = page_of(*several)
    first, second = (ps.Run(folder).scores() for folder in several[:2])
    assert second["accuracy"] > first["accuracy"] and second["val_loss"] < first["val_loss"]
    assert f'<td>{first["accuracy"]:.3f}</td><td class="best">{second["accuracy"]:.3f}</td><td>–</td>' in page
    assert f'<td>{first["val_loss"]:.3f}</td><td class="best">{second["val_loss"]:.3f}</td><td>–</td>' in page


def test_settings_that_differ_are_marked_and_the_others_folded(several: tuple[Path, ...]) -> None:
    page = page_of(*several)
    part = page[page.index('<section id="settings-that-differ">') :]
    differing, same = part.split("<details>", 1)
    assert '<td class="differs"><code><bdi>sgd</bdi></code></td>' in differing
    assert ">optimizer<" in differing and ">epochs<" in differing
    assert ">schedule<" not in differing and ">schedule<" in same
    assert ">folder<" not in part


def test_curves_of_several_runs_lie_over_each_other(several: tuple[Path, ...]) -> None:
    page = page_of(*several)
    assert re.findall(r"<figcaption><b>(.*?)</b>", page)[:3] == ["Val loss", "Train loss", "Accuracy"]
    assert 'aria-label="Val loss by epoch: plain from' in page and "; sgd from" in page
    assert "stopped from" not in page


def test_a_run_that_is_counted_in_steps_is_not_drawn_beside_epochs(tmp_path: Path) -> None:
    by_steps, by_epochs = begun_run(tmp_path / "by_steps"), begun_run(tmp_path / "by_epochs")
    for step in (1, 2):
        by_steps.log_metrics({"my_score": 0.5}, epoch=1, step=step)
        by_epochs.log_metrics({"my_score": 0.5, "val_loss": 0.5}, epoch=step, step=10 * step)
    page = page_of(by_steps.folder, by_epochs.folder)
    assert 'aria-label="My score by epoch: by_epochs from 0.5000 to 0.5000"' in page


def test_feeds_and_classes_stand_beside_each_other(several: tuple[Path, ...]) -> None:
    text = words_of(page_of(*several))
    assert "limit bound by compute bound by compute –" in text
    assert "decode, CPU ms a sample 1.600 1.600 –" in text
    assert "F1 of each class" in text


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    first, second = finished_run(tmp_path / "a" / "pets"), finished_run(tmp_path / "b" / "pets")
    assert "a/pets · b/pets" in words_of(page_of(first, second))


def test_runs_with_different_classes_and_none_scored_still_make_a_page(tmp_path: Path) -> None:
    other = finished_run(tmp_path / "birds", classes=["wren", "owl"])
    assert "wren" in words_of(page_of(finished_run(tmp_path / "pets"), other))
    stopped = [interrupted_run(tmp_path / name) for name in ("one", "two")]
    assert "None of them has a validation" in words_of(page_of(*stopped))


def test_details_of_other_kinds_are_left_to_their_own_sections(tmp_path: Path) -> None:
    details = {**class_details(run_folders.CLASSES, confusion_of(3, np.random.default_rng(0))), "kind": "detection"}
    assert "Confusion matrix" not in page_of(finished_run(tmp_path / "pets", details=details))
