"""`penstock recipe`: a recipe with every key, its default and what it is for, ready to be shortened."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.errors import OptionError, nearest
from penstock.recipes.sections import KIND, OPTIONS, SECTIONS, Key, explanations, headline, legal_keys
from penstock.runs.layout import yaml_text
from penstock.tasks.kinds import task_class

# Where explanations begin, unless a value is longer.
COLUMN = 34


class Template(NamedTuple):
    """A kind of recipe: its task, and the values that are examples rather than defaults."""

    task: str
    words: str
    examples: dict[tuple[str, str], Any]


TEMPLATES = {
    "images": Template(
        "classification",
        "Learns what an image is, from images with classes.",
        {("data", "path"): "pets.pack", ("run", "folder"): "runs/pets"},
    ),
    "trees": Template(
        "detection",
        "Learns where things are, from images or rasters with boxes.",
        {("data", "path"): "crowns.pack", ("run", "folder"): "runs/trees"},
    ),
    "behaviour": Template(
        "behaviour",
        "Learns what animals do in each frame, from videos with a row of labels for every frame.",
        {("data", "path"): "mice.pack", ("run", "folder"): "runs/mice"},
    ),
}


def recipe_text(kind: str, project: str | None = None) -> str:
    """A complete, commented recipe of a kind; with the settings of a DeepEthogram project, if one is given."""
    if kind not in TEMPLATES:
        legal = ", ".join(TEMPLATES)
        raise OptionError(f"{kind!r} is not a kind of recipe.{nearest(kind, list(TEMPLATES))} There is: {legal}.")
    template = TEMPLATES[kind]
    defaults = "its default" if project is None else "the project's value or its default"
    lines = [
        f"# {template.words} Train with: penstock train THIS_FILE",
        f"# Every key is here with {defaults}; the default also holds where a line is left out.",
    ]
    if project is not None:
        template, remarks = _with_project(template, project)
        lines += remarks
    for section in SECTIONS:
        lines += ["", *_section(section, template)]
    return "\n".join(lines) + "\n"


def _with_project(template: Template, project: str) -> tuple[Template, list[str]]:
    """The template with the values of a DeepEthogram project, and what to know about them."""
    from penstock.formats.deepethogram.project_settings import CONFIG, read_settings

    if template.task != "behaviour":
        raise OptionError(f"--from takes a DeepEthogram project, which is for behaviours and not {template.task}.")
    settings = read_settings(project)
    name = settings.folder.absolute().name.removesuffix("_deepethogram")
    taken = {(one.section, one.name): one.value for one in settings.training.taken}
    examples = {("data", "path"): f"{name}.pack", ("run", "folder"): f"runs/{name}"}
    remarks = [
        f"# Pack the project first: penstock pack deepethogram {settings.folder.as_posix()} -o {name}.pack",
        f"# Taken from {CONFIG}: {', '.join(one.written for one in settings.training.taken) or 'nothing'}.",
    ]
    if settings.training.left:
        remarks.append(f"# Not taken, because Penstock has no such setting: {', '.join(settings.training.left)}.")
    own = {path: value for path, value in taken.items() if path in legal_keys(template.task)}
    return template._replace(examples={**examples, **own}), remarks


def _section(section: str, template: Template) -> list[str]:
    task = task_class(template.task)
    titles = {"task": headline(task), "model": "The network, and what it begins with."}
    title = titles.get(section) or headline(OPTIONS[section])
    texts = {KIND: "what is learned", **explanations(OPTIONS.get(section, task))}
    keys = [key for key in legal_keys(template.task).values() if key.section == section]
    lines = [f"{section}:  # {title}"]
    for number, key in enumerate(keys):
        text = texts[key.name]
        again = number > 0 and text == texts[keys[number - 1].name]
        lines.append(_line(key, "likewise" if again else text, template))
    return lines


def _line(key: Key, text: str, template: Template) -> str:
    default = template.task if key.name == KIND else key.default
    value = template.examples.get(key.path, default)
    return f"{f'  {key.name}: {written(value)}':<{COLUMN - 2}}  # {text}"


def written(value: Any) -> str:
    """A value as a person would write it into a recipe."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(written(each) for each in value)}]"
    return yaml_text(value, default_flow_style=True, width=1000).removesuffix("\n").removesuffix("\n...")
