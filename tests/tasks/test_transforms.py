"""Own transforms of the user: functions and albumentations pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from penstock.samples import Field, Raw, Schema  # noqa: E402
from penstock.tasks.transforms import as_image, transformed  # noqa: E402
from shape_making import SHAPES, Shapes  # noqa: E402
from transform_functions import inverted, relabelled, speckled  # noqa: E402

TASK = ps.Classification(SHAPES, backbone="tiny", size=32, augmentation=False)


def as_tensor(image: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def as_floats(image: Any) -> Any:
    return as_tensor(image).float() / 255


def normalised(image: Any) -> Any:
    return as_floats(image) * 4 - 2


def batch_of(transform: Any, task: Any = TASK, **options: Any) -> dict[str, Any]:
    flow = task.training_flow(Shapes(8), seed=5, transform=transform, **{"workers": 0, **options})
    return next(iter(flow.batch(8).to_torch()))


def test_a_function_of_the_image_is_applied() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=40, augmentation=False)  # of the size of the pictures
    plain, other = batch_of(lambda image: image, task), batch_of(inverted, task)
    assert torch.equal(255 - plain["image"], other["image"])


def test_a_function_of_the_sample_is_recognised_by_its_parameter() -> None:
    batch = batch_of(relabelled)
    assert batch["label"].tolist() == [0] * 8
    assert batch["image"].shape == (8, 32, 32, 3)


@pytest.mark.parametrize("options", [{"workers": 2, "executor": "thread"}, {"workers": 2, "executor": "process"}])
def test_a_random_function_gives_the_same_bits_however_it_is_run(options: dict[str, Any]) -> None:
    assert torch.equal(batch_of(speckled)["image"], batch_of(speckled, **options)["image"])
    assert not torch.equal(batch_of(speckled)["image"], batch_of(lambda image: image)["image"])


def test_tensors_with_channels_first_are_taken() -> None:
    plain = batch_of(lambda image: image)
    assert torch.equal(batch_of(as_tensor)["image"], plain["image"])


def test_floats_from_0_to_1_become_levels_again() -> None:
    assert torch.equal(batch_of(as_floats)["image"], batch_of(lambda image: image)["image"])


def test_what_normalises_by_itself_is_told_that_the_task_does() -> None:
    with pytest.raises(ps.HopError, match="Normalising belongs to the task"):
        batch_of(normalised)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((4, 4), np.uint8), "gave 4×4 of uint8 as image; expected H×W×3"),
        (np.zeros((4, 4, 3), np.int64), "expected uint8, or floats"),
        (np.full((4, 4, 3), np.nan), "expected 0 to 1"),
        (None, "gave NoneType"),
    ],
)
def test_what_is_no_image_is_an_error_that_says_what_came(value: Any, words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        as_image(value)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ps.OptionError, match="not int"):
        batch_of(3)


# Albumentations


def pipeline() -> Any:
    albumentations = pytest.importorskip("albumentations")
    return albumentations.Compose(
        [
            albumentations.HorizontalFlip(p=0.5),
            albumentations.RandomBrightnessContrast(p=1.0),
            albumentations.GaussNoise(p=1.0),
        ]
    )


@pytest.mark.parametrize("options", [{"workers": 2, "executor": "thread"}, {"workers": 2, "executor": "process"}])
def test_a_pipeline_gives_the_same_bits_however_it_is_run(options: dict[str, Any]) -> None:
    first = batch_of(pipeline())["image"]
    assert torch.equal(first, batch_of(pipeline(), **options)["image"])
    assert not torch.equal(first, batch_of(lambda image: image)["image"])


def test_a_pipeline_differs_from_sample_to_sample() -> None:
    task = ps.Classification(SHAPES, backbone="tiny", size=40, augmentation=False)
    made, plain = batch_of(pipeline(), task)["image"], batch_of(lambda image: image, task)["image"]
    means = (made.float() - plain.float()).mean(dim=(1, 2, 3))
    assert len(set(means.tolist())) == 8


def test_a_pipeline_that_ends_in_tensors_is_taken() -> None:
    albumentations = pytest.importorskip("albumentations")
    pytorch = pytest.importorskip("albumentations.pytorch")
    batch = batch_of(albumentations.Compose([pytorch.ToTensorV2()]))
    assert torch.equal(batch["image"], batch_of(lambda image: image)["image"])


def test_a_pipeline_that_cannot_be_seeded_is_refused() -> None:
    albumentations = pytest.importorskip("albumentations")
    with pytest.raises(ps.OptionError, match="Compose"):
        batch_of(type("Old", (), {"__module__": albumentations.__name__, "__call__": lambda self, **values: values})())


# Boxes


def _boxed_sample() -> dict[str, Any]:
    image = np.zeros((40, 60, 3), np.uint8)
    image[10:20, 5:25] = 255
    return {
        "image": image,
        "boxes": np.array([[5, 10, 25, 20], [50, 0, 60, 40]], np.float32),
        "box_label": np.array([4, 2]),
        "box_score": np.array([0.4, 0.2]),
    }


class Boxed:
    """One picture with two boxes."""

    schema = Schema(
        (Field("image", "image"), Field("boxes", "boxes"), Field("box_label", "labels", dtype="int64")), ("a",) * 5
    )

    def __len__(self) -> int:
        return 1

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> dict[str, Any]:
        return _boxed_sample()


def first_sample(transform: Any) -> dict[str, Any]:
    return transformed(ps.Flow(Boxed()), transform)[0]


def test_boxes_go_through_a_pipeline_as_users_of_pascal_voc_write_it() -> None:
    albumentations = pytest.importorskip("albumentations")

    def get_transform(augment: bool) -> Any:
        steps = [albumentations.HorizontalFlip(p=1.0 if augment else 0.0), albumentations.Crop(30, 0, 60, 40)]
        boxes = albumentations.BboxParams(format="pascal_voc", label_fields=["category_ids"])
        return albumentations.Compose(steps, bbox_params=boxes)

    made = first_sample(get_transform)
    np.testing.assert_allclose(made["boxes"], [[5, 10, 25, 20]], atol=1e-4)
    assert made["boxes"].dtype == np.float32
    assert made["box_label"].tolist() == [4]
    assert made["box_score"].tolist() == [0.4]  # whatever else is said of a box goes with it
    assert made["image"][10:20, 5:25].min() == 255


def test_a_pipeline_that_moves_pixels_and_has_no_bbox_params_is_refused_before_training() -> None:
    albumentations = pytest.importorskip("albumentations")
    flips = albumentations.Compose([albumentations.OneOf([albumentations.HorizontalFlip(p=1)])])
    with pytest.raises(ps.OptionError, match="HorizontalFlip moves pixels, and boxes would stay.*bbox_params"):
        transformed(ps.Flow(Boxed()), flips)
    colours = albumentations.Compose([albumentations.RandomBrightnessContrast(p=1), albumentations.CoarseDropout(p=1)])
    assert first_sample(colours)["boxes"].tolist() == _boxed_sample()["boxes"].tolist()


def test_a_function_that_calls_a_pipeline_for_the_image_alone_is_refused_before_training() -> None:
    albumentations = pytest.importorskip("albumentations")
    flips = albumentations.Compose([albumentations.HorizontalFlip(p=1)])
    with pytest.raises(ps.OptionError, match="HorizontalFlip moves pixels, and boxes would stay"):
        transformed(ps.Flow(Boxed()), lambda image: flips(image=image)["image"])


def test_a_transform_of_torchvision_that_leaves_arrays_as_they_are_is_refused() -> None:
    from torchvision.transforms import v2

    with pytest.raises(ps.OptionError, match="leaves numpy arrays as they are"):
        batch_of(v2.RandomHorizontalFlip(p=1.0))
    flipped = batch_of(v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(p=1.0)]))
    assert torch.equal(flipped["image"].flip(2), batch_of(lambda image: image)["image"])


def test_boxes_of_another_format_are_refused() -> None:
    albumentations = pytest.importorskip("albumentations")
    boxes = albumentations.BboxParams(format="coco", label_fields=["category_ids"])
    with pytest.raises(ps.OptionError, match="pascal_voc"):
        first_sample(albumentations.Compose([albumentations.HorizontalFlip()], bbox_params=boxes))


def test_an_image_that_changes_its_size_must_take_its_boxes_along() -> None:
    with pytest.raises(ps.HopError, match="made 20×20 px of 60×40 px, and boxes did not follow"):
        first_sample(lambda image: image[:20, :20])
    assert first_sample(lambda image: np.minimum(image, 100))["image"].max() == 100
