"""Losses of classification, against torch's own where it has one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from penstock.tasks.losses import multi_label_losses, single_label_losses  # noqa: E402


@pytest.fixture
def logits() -> object:
    return torch.randn(12, 4, generator=torch.Generator().manual_seed(3))


def test_plain_loss_is_cross_entropy(logits) -> None:
    labels = torch.arange(12) % 4
    losses = single_label_losses(logits, labels)
    torch.testing.assert_close(losses.mean(), functional.cross_entropy(logits, labels))
    torch.testing.assert_close(losses.losses, functional.cross_entropy(logits, labels, reduction="none"))


def test_class_weights_are_those_of_torch(logits) -> None:
    labels, weights = torch.arange(12) % 4, torch.tensor([1.0, 2.0, 0.5, 4.0])
    expected = functional.cross_entropy(logits, labels, weight=weights)
    torch.testing.assert_close(single_label_losses(logits, labels, class_weights=weights).mean(), expected)


def test_samples_without_a_label_count_for_nothing(logits) -> None:
    labels = torch.arange(12) % 4
    labels[5:] = -1
    torch.testing.assert_close(
        single_label_losses(logits, labels).mean(), functional.cross_entropy(logits[:5], labels[:5])
    )


@pytest.mark.parametrize("losses", [single_label_losses, multi_label_losses])
def test_a_batch_without_any_label_has_a_loss_and_gradient_of_zero(losses, logits) -> None:
    logits.requires_grad_()
    labels = torch.full((12,), -1) if losses is single_label_losses else torch.full((12, 4), -1)
    mean = losses(logits, labels).mean()
    mean.backward()
    assert mean.item() == 0
    assert logits.grad.abs().max().item() == 0


def test_focal_leaves_aside_what_is_answered_well() -> None:
    logits, labels = torch.tensor([[8.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
    plain, focal = single_label_losses(logits, labels).losses, single_label_losses(logits, labels, focal=2.0).losses
    assert focal[0] / plain[0] < 1e-5
    torch.testing.assert_close(focal[1] / plain[1], (1 - logits[1].softmax(0)[0]) ** 2)


def test_label_smoothing_is_that_of_torch(logits) -> None:
    labels = torch.arange(12) % 4
    expected = functional.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(single_label_losses(logits, labels, label_smoothing=0.1).mean(), expected)


def test_several_labels_are_binary_cross_entropy_over_those_that_are_known(logits) -> None:
    labels = torch.randint(0, 2, (12, 4), generator=torch.Generator().manual_seed(5))
    labels[3, 1] = labels[7, 0] = -1
    known = labels >= 0
    expected = functional.binary_cross_entropy_with_logits(logits[known], labels[known].float())
    torch.testing.assert_close(multi_label_losses(logits, labels).mean(), expected)


def test_weights_of_several_labels_are_those_of_what_is_there(logits) -> None:
    labels, weights = torch.randint(0, 2, (12, 4)), torch.tensor([1.0, 2.0, 0.5, 4.0])
    expected = functional.binary_cross_entropy_with_logits(logits, labels.float(), pos_weight=weights)
    torch.testing.assert_close(multi_label_losses(logits, labels, class_weights=weights).mean(), expected)
