"""Motion between frames: what it means, and that its loss knows right from wrong."""

from __future__ import annotations

import torch
from torch.nn.functional import interpolate

from penstock.tasks.behaviour.losses import motion_losses
from penstock.tasks.behaviour.networks import SCALES, MotionNetwork, compared, moved


def smooth_frames(shift_px: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two frames of a random scene; in the second, everything is so many pixels further right."""
    rough = torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    scene = interpolate(rough, scale_factor=8, mode="bicubic")
    return scene, scene.roll(shift_px, dims=3)


def constant_flows(frames: torch.Tensor, shift_px: float) -> list[torch.Tensor]:
    height, width = frames.shape[2:]
    return [
        torch.tensor([shift_px / one, 0.0]).view(1, 2, 1, 1).expand(2, 2, height // one, width // one) for one in SCALES
    ]


def test_moving_the_second_frame_back_gives_the_first() -> None:
    first, second = smooth_frames(3)
    flow = torch.tensor([3.0, 0.0]).view(1, 2, 1, 1).expand(2, 2, *first.shape[2:])
    back = moved(second, flow)
    assert torch.allclose(back[..., 8:-8], first[..., 8:-8], atol=1e-4)


def test_the_right_motion_has_a_smaller_loss_than_none_and_than_its_opposite() -> None:
    first, second = smooth_frames(4)
    right, none, wrong = (motion_losses(first, second, constant_flows(first, one))["loss"] for one in (4.0, 0.0, -4.0))
    assert (right < none).all()
    assert (none < wrong).all()


def test_places_that_look_alike_are_found_beside_each_other() -> None:
    map_ = torch.nn.functional.normalize(torch.randn(1, 8, 9, 9, generator=torch.Generator().manual_seed(1)), dim=1)
    alike = compared(map_, map_.roll(1, dims=3))  # everything went one place to the right
    assert (alike[0, :, 4, 4].argmax() == 2 * 5 + 3).item()  # no row down, one column right


def test_a_new_network_says_that_nothing_moves_and_gives_every_scale() -> None:
    network = MotionNetwork(8).eval()
    flows = network(torch.randn(2, 3, 64, 96), torch.randn(2, 3, 64, 96))
    assert [tuple(one.shape) for one in flows] == [(2, 2, 16, 24), (2, 2, 8, 12), (2, 2, 4, 6)]
    assert all(not one.any() for one in flows)


def test_the_network_learns_which_way_a_scene_moves() -> None:
    torch.manual_seed(0)
    network = MotionNetwork(8)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    first, second = smooth_frames(4)
    both = torch.cat([first, second]), torch.cat([second, first])
    for _ in range(40):
        optimizer.zero_grad()
        motion_losses(*both, network(*both))["loss"].mean().backward()
        optimizer.step()
    across = network(*both)[0][:, 0, 2:-2, 2:-2].mean(dim=(1, 2))
    assert (across[:2] > 0.3).all()  # one pixel at a quarter of the size is the truth
    assert (across[2:] < -0.3).all()
