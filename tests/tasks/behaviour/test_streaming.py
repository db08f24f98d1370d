"""Videos streamed through the networks give what their clips give, however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import penstock as ps
from penstock.tasks.behaviour.networks import BehaviourNetwork, Plan
from penstock.tasks.behaviour.streaming import FeatureStream, sequence_logits
from tasks.behaviour.frames_source import Frames, random_frames

LEVELS = (120.0, 120.0, 120.0), (50.0, 50.0, 50.0)


def small_network(
    *, size: str = "tiny", frames: int = 5, stride: int = 1, sequence: str = "convolution"
) -> BehaviourNetwork:
    torch.manual_seed(0)
    network = BehaviourNetwork(Plan(size, 3, frames, stride, sequence, *LEVELS))  # type: ignore[arg-type]
    for estimator in network.motion.estimators:  # a new network says that nothing moves: no test of motion
        torch.nn.init.normal_(estimator.flow.weight, std=0.1)
    torch.nn.init.normal_(network.sequence.last.weight)
    return network.eval()


def streamed(network: BehaviourNetwork, video: torch.Tensor, cuts: list[int]) -> torch.Tensor:
    stream = FeatureStream(network)
    pieces = [stream.push(piece) for piece in video.tensor_split(cuts)]
    return torch.cat([one.logits for one in [*pieces, stream.finish()]])


@pytest.mark.parametrize(
    ("size", "frames", "stride", "count"), [("tiny", 5, 1, 37), ("tiny", 4, 3, 20), ("slow", 3, 1, 4)]
)
def test_a_stream_gives_what_clips_of_the_flow_give(size: str, frames: int, stride: int, count: int) -> None:
    network = small_network(size=size, frames=frames, stride=stride)
    images = random_frames(count)
    flow = ps.Flow(Frames(images, np.zeros((count, 2))), workers=0).clips(frames, stride).batch(count)
    clips = torch.from_numpy(next(iter(flow))["image"])
    with torch.inference_mode():
        pixels = network.pixels(clips.flatten(0, 1)).unflatten(0, clips.shape[:2])
        expected = network.frames(network.seen_images(pixels), network.clip_flows(pixels)).logits
    found = streamed(network, torch.from_numpy(images), [])
    assert found.shape == (count, 3)
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_results_do_not_depend_on_how_frames_are_handed_over() -> None:
    network, video = small_network(), torch.from_numpy(random_frames(41))
    whole = streamed(network, video, [])
    for cuts in ([1, 2, 3], [16], [40], list(range(1, 41))):
        assert torch.equal(streamed(network, video, cuts), whole)


@pytest.mark.parametrize("count", [1, 2])
def test_the_shortest_videos_have_an_answer_for_each_frame(count: int) -> None:
    assert len(streamed(small_network(), torch.from_numpy(random_frames(count)), [])) == count


def test_a_video_without_frames_has_no_answers() -> None:
    stream = FeatureStream(small_network())
    assert stream.push(torch.zeros(0, 32, 64, 3, dtype=torch.uint8)).logits.shape == (0, 3)
    assert stream.finish().features.shape == (0, small_network().frames.feature_count)


@pytest.mark.parametrize("block", [1, 50, 64])
def test_the_sequence_has_no_seams(block: int) -> None:
    network = small_network()
    features = np.random.default_rng(0).normal(size=(200, network.frames.feature_count)).astype(np.float32)
    whole, blocks = (sequence_logits(network, features, block=one) for one in (10_000, block))
    assert whole.shape == (200, 3)
    assert np.allclose(whole, blocks, atol=1e-4)


def test_a_frame_outside_of_the_receptive_field_changes_nothing() -> None:
    network = small_network()
    features = np.random.default_rng(0).normal(size=(200, network.frames.feature_count)).astype(np.float32)
    before = sequence_logits(network, features)
    features[150] += 5
    changed = np.flatnonzero(np.abs(sequence_logits(network, features) - before).max(axis=1) > 1e-6)
    reach = network.sequence.receptive_field // 2
    assert (changed.min(), changed.max()) == (150 - reach, 150 + reach)


def test_the_gru_answers_for_every_frame_too() -> None:
    network = small_network(sequence="gru")
    features = np.random.default_rng(0).normal(size=(700, network.frames.feature_count)).astype(np.float32)
    whole, blocks = (sequence_logits(network, features, block=one) for one in (10_000, 100))
    assert np.allclose(whole, blocks, atol=1e-3)  # what lies 256 frames away is as good as forgotten
