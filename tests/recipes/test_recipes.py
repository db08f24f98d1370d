"""A recipe becomes the options that Python users pass; what is wrong is said all at once, by key, file and line."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.recipes.recipe import Recipe
from penstock.recipes.sections import OPTIONS, explanations, legal_keys, task_kinds, typed_fields
from penstock.recipes.templates import TEMPLATES, recipe_text, written
from penstock.runs.layout import yaml_text
from penstock.runs.run import Run
from penstock.runs.writing import RunWriter
from penstock.tasks.classification import Classification
from penstock.tasks.kinds import task_class
from penstock.training.options import DataOptions, FeedOptions, RunOptions, TrainOptions
from project_making import write_project

SHORT = """\
data:
  path: pets.pack
task:
  kind: classification
"""


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pets.yaml").write_text(SHORT)
    return Path("pets.yaml")


def read(text: str, *overrides: str) -> Recipe:
    Path("pets.yaml").write_text(text, encoding="utf-8")
    return Recipe.read("pets.yaml", overrides)


def complaints(text: str, *overrides: str) -> list[str]:
    with pytest.raises(OptionError) as caught:
        read(text, *overrides)
    return str(caught.value).splitlines()


def test_a_short_recipe_has_the_defaults_of_python_and_a_folder_by_its_name(pets: Path) -> None:
    assert Recipe.read(pets) == Recipe(
        Classification(), DataOptions(path="pets.pack"), run=RunOptions(folder="runs/pets")
    )


@pytest.mark.parametrize("kind", TEMPLATES)
def test_the_written_recipe_explains_every_key_and_reads_as_the_defaults(pets: Path, kind: str) -> None:
    text = recipe_text(kind)
    recipe = read(text)
    template = TEMPLATES[kind]
    path, folder = (template.examples[key] for key in (("data", "path"), ("run", "folder")))
    assert recipe == Recipe(task_class(template.task)(), DataOptions(path=path), run=RunOptions(folder=folder))
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(lines) == len(legal_keys(TEMPLATES[kind].task))
    assert all(" # " in line for line in lines)
    for section, keys in yaml.safe_load(text).items():
        assert {(section, key) for key in keys} <= set(legal_keys(TEMPLATES[kind].task))


@pytest.mark.usefixtures("pets")
def test_a_recipe_takes_the_settings_of_a_project_and_names_the_others(tmp_path: Path) -> None:
    augs = {"LR": 0, "UD": 0.5, "degrees": 0, "grayscale": 0.5, "crop_size": 128, "pad": None, "resize": [64, 96]}
    compute = {"batch_size": 16, "num_workers": 8}
    train = {"loss_weight_exp": 1.0, "lr": 0.0002}
    sections = {"augs": augs, "compute": compute, "train": train, "preset": "deg_m"}
    project = write_project(tmp_path / "mice_deepethogram", ["m1"])
    config = project / "project_config.yaml"
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **sections}))
    text = recipe_text("behaviour", str(project))
    recipe = read(text)
    task: Any = recipe.task
    assert (task.flip, task.vertical_flip, task.rotation, task.grey) == (0.0, 0.5, 0.0, 0.5)
    assert (task.weight_exponent, task.size) == (1.0, "medium")
    assert (recipe.train.batch_size, recipe.train.learning_rate) == (16, 0.0002)
    assert (recipe.data.path, recipe.run.folder) == ("mice.pack", "runs/mice")
    left = next(line for line in text.splitlines() if line.startswith("# Not taken"))
    assert "augs.crop_size 128" in left and "compute.num_workers 8" in left and "pad" not in left
    with pytest.raises(OptionError, match="for behaviours and not detection"):
        recipe_text("trees", str(project))


@pytest.mark.parametrize("options", [*OPTIONS.values(), *map(task_class, task_kinds())], ids=lambda kind: kind.__name__)
def test_every_option_is_explained_in_the_docstring_of_its_dataclass(options: type[Any]) -> None:
    names = {field.name for field, _ in typed_fields(options)}
    assert names == set(explanations(options))


def test_an_explanation_may_go_on_in_a_deeper_line_and_be_for_several_options() -> None:
    class Options:
        """How it goes.

        first, second   how much,
                        or how little
        third           when

        Nothing more  here, and no option.
        """

    assert explanations(Options) == {
        "first": "how much, or how little",
        "second": "how much, or how little",
        "third": "when",
    }


def test_an_unknown_kind_of_recipe_is_told_what_there_is() -> None:
    with pytest.raises(OptionError, match="'image' is not a kind of recipe. Did you mean 'images'"):
        recipe_text("image")
    with pytest.raises(OptionError, match="There is: images"):
        recipe_text("music")


def test_everything_that_is_wrong_is_said_at_once_with_key_file_line_and_the_nearest_key(pets: Path) -> None:
    found = complaints(
        """\
data:
  path: pets.pack
  valid: val
task:
  kind: classification
  label_smoothing: much
train:
  epochz: 5
  batch_size: many
  optimizer: adan
  epochs: 0
  workers: 4
fed:
  workers: 3
""",
        "model.backbon=resnet18",
        "epochs=3",
        "train.compile=maybe",
        "nonsense",
    )
    assert found == [
        "command line: 'nonsense' is not key=value. Write it like train.epochs=5.",
        "command line: model.backbon is not a key. Did you mean 'backbone'?",
        "command line: epochs is not a section of a recipe. Did you mean 'train.epochs'?",
        "command line: train.compile must be on or off, and is 'maybe'.",
        "pets.yaml line 3: data.valid is not a key. Did you mean 'val'?",
        "pets.yaml line 6: task.label_smoothing must be a number, and is 'much'.",
        "pets.yaml line 8: train.epochz is not a key. Did you mean 'epochs'?",
        "pets.yaml line 9: train.batch_size must be auto or a whole number, and is 'many'.",
        "pets.yaml line 10: train.optimizer must be sgd, adam, adamw, and is 'adan'. Did you mean 'adam'?",
        "pets.yaml line 11: train.epochs=0 must be a whole number from 1.",
        "pets.yaml line 12: train.workers is not a key. Did you mean 'feed.workers'?",
        "pets.yaml line 13: fed is not a section of a recipe. Did you mean 'feed'?",
    ]


def test_what_the_task_refuses_is_said_by_line_too(pets: Path) -> None:
    found = complaints(SHORT + "  label_smoothing: 2\n  size: 3\nmodel:\n  backbone: resnet19\n")
    assert [line.split("=")[0] for line in found] == [
        "pets.yaml line 5: task.label_smoothing",
        "pets.yaml line 6: task.size",
        "pets.yaml line 8: model.backbone",
    ]


def test_a_misspelt_key_is_said_without_loading_torch(pets: Path) -> None:
    code = """
import sys
import penstock as ps
try:
    ps.Recipe.read("pets.yaml", ["train.epochz=5"])
except ps.OptionError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "command line: train.epochz is not a key. Did you mean 'epochs'? False\n"


def test_what_a_recipe_cannot_do_without_is_asked_for(pets: Path) -> None:
    found = complaints("train:\n  epochs: 3\n")
    assert len(found) == 2 and "task.kind is missing" in found[0] and "data.path is missing" in found[1]
    assert "task.kind=klassification is not one of classification" in complaints(SHORT.replace(": class", ": klass"))[0]


def test_the_command_line_has_the_last_word_and_its_values_are_yaml(pets: Path) -> None:
    recipe = Recipe.read(
        pets,
        [
            "train.epochs=5",
            "train.epochs=6",
            "train.learning_rate=1e-4",
            "train.checkpoints=off",
            "data.val=none",
            "data.split=train=0.8,val=0.2",
            "data.path=[a.tfrecord, b.tfrecord]",
            "model.weights='none'",
            "task.classes=[no, 1, größe]",
            "train.precision=16",
            "data.options.images=photos/",
            "data.options.clip_boxes=true",
            "feed.memory=4 GB",
        ],
    )
    assert (recipe.train.epochs, recipe.train.learning_rate, recipe.train.checkpoints) == (6, 1e-4, False)
    assert recipe.data == DataOptions(
        path=("a.tfrecord", "b.tfrecord"),
        val=None,
        split="train=0.8,val=0.2",
        options={"images": "photos/", "clip_boxes": True},
    )
    task = recipe.task.settings()
    assert task["weights"] == "none" and tuple(task["classes"]) == ("no", "1", "größe")
    assert recipe.train.precision == "16" and recipe.feed.memory == "4 GB"


def test_a_pattern_that_yaml_would_take_for_an_alias_is_text(pets: Path) -> None:
    assert Recipe.read(pets, ["data.path=*.tfrecord"]).data.path == "*.tfrecord"


def test_an_override_below_a_key_changes_one_entry_of_it(pets: Path) -> None:
    text = SHORT.replace("path: pets.pack", "path: pets.pack\n  options: {images: a/, labels: none}")
    assert read(text, "data.options.images=b/").data.options == {"labels": "none", "images": "b/"}


def test_words_are_read_by_the_type_of_their_key(pets: Path) -> None:
    recipe = read(
        """\
data: {path: 2024, train: on, val: ~}
task: {kind: classification, classes: [yes, no, 'null', 0x1, 1e3], crop_scale: [0.5, 1], tta: yes}
train: {learning_rate: 3, weight_decay: 1e-5, freeze: 3, devices: [0, 1], early_stopping: 1_000}
"""
    )
    assert recipe.data == DataOptions(path="2024", train="on", val=None)
    task = recipe.task.settings()
    assert list(task["classes"]) == ["yes", "no", "null", "0x1", "1e3"] and task["tta"] is True
    assert list(task["crop_scale"]) == [0.5, 1.0]
    train = recipe.train
    assert (train.learning_rate, train.weight_decay, train.freeze, train.devices) == (3.0, 1e-5, 3, (0, 1))
    assert type(train.learning_rate) is float and train.early_stopping == 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data:\n  path: a\n  path: b\n", "line 3: data.path is here again, after line 2. Keep one of them."),
        ("data:\n  options: {a: 1, a: 2}\n", "line 2: data.options.a is here again, after line 2"),
        ("train: {epochs: 1}\ntrain: {epochs: 2}\n", "line 2: train is here again, after line 1"),
        ("data:\n  path: !!python/name:os.system\n", "line 2: tag:yaml.org,2002:python/name:os.system is not a plain"),
        ("data:\n  path: !own x\n", "line 2: !own is not a plain value"),
        ("data:\n  path: &a x\n  train: *a\n", "line 3: anchors and aliases are not for recipes"),
        ("data:\n\tpath: a\n", "line 2: found character '\\t' that cannot start any token"),
        ("data: [path, a]\n", "line 1: section data has no keys"),
        ("- data\n", "line 1: there are no sections here"),
        ("just words", "line 1: there are no sections here"),
        ("? [a, b]\n: 1\n", "line 1: a key must be a word"),
        ("data:\n  path: [1, [2]]\n", "line 2: data.path must be text or a list [text, …], and is ['1', ['2']]"),
        ("train:\n  epochs: 1.5\n", "line 2: train.epochs must be a whole number, and is '1.5'"),
        ("train:\n  epochs: '5'\n", "line 2: train.epochs must be a whole number, and is '5'"),
        ("train:\n  epochs:\n", "line 2: train.epochs must be a whole number, and is empty"),
        ("task:\n  crop_scale: [1]\n", "task.crop_scale must be a list [a number, a number], and is ['1']"),
        ("a: 1\n---\nb: 2\n", "but found another document"),
        ("data:\n  path: \xff\n", "unacceptable character"),
    ],
)
def test_text_that_is_no_recipe_is_refused_by_line(pets: Path, text: str, words: str) -> None:
    pets.write_bytes(text.encode("latin-1"))
    with pytest.raises(OptionError) as caught:
        Recipe.read(pets)
    assert words in str(caught.value)


def test_many_lines_that_stand_for_more_than_memory_has_are_refused_at_once(pets: Path) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    assert any("anchors and aliases" in complaint for complaint in complaints("\n".join(lines)))


def test_what_is_no_recipe_at_all_is_said(pets: Path) -> None:
    with pytest.raises(
        OptionError, match=r"there is no such recipe\..* penstock recipe images\|.* > cats.yaml writes one"
    ):
        Recipe.read("cats.yaml")
    Path("photos").mkdir()
    with pytest.raises(OptionError, match="photos is a folder"):
        Recipe.read("photos")
    Path("photo.jpg").write_bytes(b"\0" * 1_000_001)
    with pytest.raises(OptionError, match="more than 1 MB"):
        Recipe.read("photo.jpg")


def test_the_settings_of_a_run_are_a_recipe_again(pets: Path) -> None:
    recipe = Recipe.read(
        pets, ["train.learning_rate=1e-5", "data.options={images: a}", "task.classes=[yes, 'null', b]", "data.val=none"]
    )
    writer = RunWriter(recipe.run.folder)
    writer.write_settings(recipe.sections(), chosen={"train": {"batch_size": 32}})
    assert Recipe.read(recipe.run.folder) == Recipe.read(writer.folder / "settings.yaml") == recipe
    assert set(Run(writer.folder).settings) == {"data", "task", "model", "train", "feed", "run"}
    assert set(Run(writer.folder).settings["model"]) == {"backbone", "weights"}


@pytest.mark.parametrize("trained", ["shapes_run", "crowns_run", "mice_run"])
def test_a_real_training_leaves_the_recipe_of_its_task(trained: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(trained)
    recipe = Recipe.read(run.folder, ["data.path=x.pack"])
    assert {**recipe.sections(), "data": None} == {**run.settings, "data": None}
    assert (recipe.data.path, recipe.task.kind) == ("x.pack", run.settings["task"]["kind"])


TEXTS = st.sampled_from(
    ["none", "Null", "~", "1e3", "0x1", "on", "1_0", "*a", "- a", "a: b", "#", ".5", "true"]
) | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
SETTINGS = {
    ("data", "path"): TEXTS,
    ("data", "val"): st.none() | TEXTS,
    ("task", "classes"): st.lists(TEXTS, min_size=2, max_size=4, unique=True),
    ("train", "learning_rate"): st.just("auto") | st.floats(1e-12, 1e6),
    ("train", "freeze"): st.none() | st.integers(0, 9) | TEXTS,
    ("data", "options"): st.none()
    | st.dictionaries(st.sampled_from("ab"), st.none() | st.booleans() | TEXTS, min_size=1),
    ("train", "compile"): st.booleans(),
    ("feed", "max_bad"): st.none() | st.integers(0, 99) | st.floats(0, 1),
}


@settings(max_examples=60)
@given(values=st.fixed_dictionaries({}, optional=SETTINGS))
def test_what_is_dumped_is_read_again_whatever_the_texts(
    tmp_path_factory: pytest.TempPathFactory, values: dict[tuple[str, str], Any]
) -> None:
    sections: dict[str, dict[str, Any]] = {
        "data": {"path": "x"},
        "task": {"kind": "classification"},
        "train": {},
        "feed": {},
    }
    for (section, key), value in values.items():
        sections[section][key] = value
    if "max_bad" in sections["feed"]:
        sections["feed"]["on_bad_sample"] = "substitute"  # else it has no effect, and is refused
    path = tmp_path_factory.mktemp("recipe") / "a.yaml"
    path.write_text(yaml_text(sections), encoding="utf-8")
    recipe = Recipe.read(path)
    parts = {"data": recipe.data, "train": recipe.train, "feed": recipe.feed, "task": recipe.task}
    for (section, key), value in values.items():
        found = getattr(parts[section], key)
        assert found == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), (True, "on"), ((0.5, 1.0), "[0.5, 1.0]"), ("auto", "auto"), ("none", "'none'")]
)
def test_values_are_written_as_people_write_them(value: Any, text: str) -> None:
    assert written(value) == text


def test_options_by_name_are_what_train_takes(pets: Path) -> None:
    options = Recipe.read(pets, ["train.epochs=3", "feed.workers=2"]).options()
    names = [field.name for part in OPTIONS.values() for field, _ in typed_fields(part)]
    assert len(names) == len(set(names)), "a name of two sections could not be passed"
    assert set(options) == set(names) - {"path"}
    assert (options["epochs"], options["workers"], options["folder"]) == (3, 2, "runs/pets")


def test_options_are_frozen() -> None:
    for options in (DataOptions, TrainOptions, FeedOptions, RunOptions):
        with pytest.raises(dataclasses.FrozenInstanceError):
            options().path = "x"  # type: ignore[union-attr]
