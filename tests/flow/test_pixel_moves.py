"""What moves pixels moves all that lies on them, or is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import augment
from penstock.samples import Field, Raw, Schema

IMAGE = Field("image", "image")
BOXES = Field("boxes", "boxes")
MASK = Field("mask", "mask")
KEYPOINTS = Field("keypoints", "array", dtype="float32", shape=(None, 2))


class Pictures:
    """Pictures of 60×40 px with a white part, and fields that lie on it."""

    def __init__(self, *fields: Field) -> None:
        self.schema = Schema((IMAGE, *fields))

    def __len__(self) -> int:
        return 2

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> dict[str, Any]:
        image = np.zeros((40, 60, 3), np.uint8)
        image[10:20, 5:25] = 255
        values = {
            "image": image,
            "boxes": np.array([[5, 10, 25, 20]], np.float32),
            "mask": (image[..., 0] > 0).astype(np.uint8),
            "keypoints": np.array([[5, 10], [24, 19]], np.float32),
        }
        return {field.name: values[field.name] for field in self.schema.fields}


def cropped(image: Any) -> Any:
    return image[:20, :20]


def mirrored(image: Any) -> Any:
    return np.fliplr(image)


def brighter(image: Any) -> Any:
    return np.maximum(image, 9)


@pytest.mark.parametrize("field", [BOXES, MASK, KEYPOINTS])
def test_a_function_of_the_image_that_mirrors_it_is_refused_when_the_plan_is_built(field: Field) -> None:
    for function in (mirrored, lambda image: mirrored(image), functools.partial(mirrored)):
        with pytest.raises(ps.OptionError, match=f"fliplr moves pixels, and {field.name} would stay"):
            ps.Flow(Pictures(field)).map(function, field="image")
    assert ps.Flow(Pictures(field)).map(brighter, field="image")[0]["image"].min() == 9
    assert ps.Flow(Pictures()).map(mirrored, field="image")[0]["image"][10, 59 - 5, 0] == 255


@pytest.mark.parametrize("field", [BOXES, MASK, KEYPOINTS])
def test_a_function_of_the_image_that_changes_its_size_is_an_error_at_the_sample(field: Field) -> None:
    with pytest.raises(ps.HopError, match=f"made 20×20 px of 60×40 px, and {field.name} did not follow"):
        ps.Flow(Pictures(field)).map(cropped, field="image")[0]
    assert ps.Flow(Pictures()).map(cropped, field="image")[0]["image"].shape == (20, 20, 3)


def test_an_image_with_its_channels_moved_to_the_front_keeps_its_size() -> None:
    made = ps.Flow(Pictures(BOXES)).map(lambda image: image.transpose(2, 0, 1), field="image")[0]
    assert made["image"].shape == (3, 40, 60)


def test_a_function_of_the_sample_may_not_leave_boxes_outside_of_the_image() -> None:
    def shrunk(sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "image": sample["image"][:15, :15]}

    def padded(sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "image": np.pad(sample["image"], ((0, 10), (0, 10), (0, 0)))}

    with pytest.raises(ps.HopError, match="boxes reach outside of the image"):
        ps.Flow(Pictures(BOXES)).map(shrunk)[0]
    assert ps.Flow(Pictures(BOXES)).map(padded)[0]["image"].shape == (50, 70, 3)


def test_keypoints_do_not_follow_our_steps_and_are_not_left_behind() -> None:
    for step in (augment.HorizontalFlip(), augment.Resize(8), augment.RandomCrop(8)):
        with pytest.raises(ps.OptionError, match="moves pixels, and keypoints would stay.*keypoint_params"):
            ps.Flow(Pictures(KEYPOINTS)).map(step)
    assert "keypoints" in ps.Flow(Pictures(KEYPOINTS)).map(augment.Grey())[0]


def test_mixed_flows_are_looked_at_one_by_one() -> None:
    mixed = ps.mix([ps.Flow(Pictures()), ps.Flow(Pictures(BOXES))])
    with pytest.raises(ps.OptionError, match="boxes would stay"):
        mixed.map(mirrored, field="image")


def test_transforms_of_torchvision_and_kornia_are_known() -> None:
    torchvision = pytest.importorskip("torchvision")
    from torchvision.transforms import v2

    flips = v2.Compose([v2.ToImage(), v2.RandomApply([v2.RandomRotation(30)])])
    with pytest.raises(ps.OptionError, match="RandomRotation moves pixels"):
        ps.Flow(Pictures(BOXES)).map(flips, field="image")
    old = torchvision.transforms.RandomHorizontalFlip()
    with pytest.raises(ps.OptionError, match="RandomHorizontalFlip moves pixels"):
        ps.Flow(Pictures(MASK)).map(lambda image: old(image), field="image")
    with pytest.raises(ps.OptionError, match="field='image'"):
        ps.Flow(Pictures()).map(v2.GaussianBlur(3))
    with pytest.raises(ps.OptionError, match="leaves numpy arrays as they are"):
        ps.Flow(Pictures()).map(v2.GaussianBlur(3), field="image")
    kornia = pytest.importorskip("kornia")
    turned = kornia.augmentation.RandomAffine(10.0)
    with pytest.raises(ps.OptionError, match="RandomAffine moves pixels"):
        ps.Flow(Pictures(BOXES)).map(lambda image: turned(image), field="image")


# Albumentations


def composed(*steps: str, **params: Any) -> Any:
    albumentations = pytest.importorskip("albumentations")
    return albumentations.Compose([getattr(albumentations, step)(p=1) for step in steps], **params)


def test_a_pipeline_takes_masks_boxes_and_keypoints_along() -> None:
    albumentations = pytest.importorskip("albumentations")
    pipeline = composed(
        "HorizontalFlip",
        bbox_params=albumentations.BboxParams(format="pascal_voc", label_fields=["box_label"]),
        keypoint_params=albumentations.KeypointParams(format="xy", remove_invisible=False),
    )
    made = ps.Flow(Pictures(BOXES, MASK, KEYPOINTS)).map(pipeline)[0]
    np.testing.assert_array_equal(made["mask"], made["image"][..., 0] > 0)
    assert made["mask"][10:20, 35:55].all()
    np.testing.assert_allclose(made["boxes"], [[35, 10, 55, 20]], atol=1e-3)
    assert made["keypoints"][:, 0].max() == pytest.approx(60 - 5, abs=1)


@pytest.mark.parametrize(("field", "params"), [(BOXES, "bbox_params"), (KEYPOINTS, "keypoint_params")])
def test_a_pipeline_that_cannot_take_a_field_along_is_refused_when_the_plan_is_built(field: Field, params: str) -> None:
    with pytest.raises(ps.OptionError, match=f"VerticalFlip moves pixels, and {field.name} would stay.*{params}"):
        ps.Flow(Pictures(field)).map(composed("VerticalFlip"))
    with pytest.raises(ps.OptionError, match=f"VerticalFlip moves pixels, and {field.name} would stay"):
        ps.Flow(Pictures(field)).map(composed("VerticalFlip"), field="image")
    assert ps.Flow(Pictures(field)).map(composed("GaussNoise"))[0]["image"].shape == (40, 60, 3)


def test_a_pipeline_after_a_function_is_looked_at_when_the_sample_comes() -> None:
    flow = ps.Flow(Pictures(BOXES)).map(lambda sample: {**sample}).map(composed("HorizontalFlip"))
    with pytest.raises(ps.HopError, match="HorizontalFlip moves pixels, and boxes would stay"):
        flow[0]
    without = ps.Flow(Pictures(BOXES)).map(lambda sample: {"image": sample["image"]}).map(composed("HorizontalFlip"))
    assert without[0]["image"][10, 59 - 5, 0] == 255


def test_a_pipeline_in_a_flow_gives_the_same_bits_however_it_is_run() -> None:
    def bits(**options: Any) -> bytes:
        flow = ps.Flow(Pictures(), seed=3, **options).map(composed("RandomBrightnessContrast", "GaussNoise")).batch(2)
        return bytes(next(iter(flow))["image"].tobytes())

    assert bits(workers=0) == bits(workers=2, executor="thread") == bits(workers=1, executor="process")


def test_a_pipeline_of_other_settings_is_another_plan() -> None:
    albumentations = pytest.importorskip("albumentations")
    flows = [
        ps.Flow(Pictures()).map(albumentations.Compose([albumentations.Blur(limit, p=1)])).batch(1) for limit in (3, 7)
    ]
    with pytest.raises(ps.OptionError):
        flows[1].restore(flows[0].state())


def test_a_function_of_one_field_of_batches_gets_that_field() -> None:
    flow = ps.Flow(Pictures(), workers=0).batch(2).map(lambda images: images.mean(), field="image", batched=True)
    assert float(next(iter(flow))["image"]) > 0
    with pytest.raises(ps.OptionError, match="a batch has image"):
        next(iter(ps.Flow(Pictures(), workers=0).batch(2).map(brighter, field="picture", batched=True)))
