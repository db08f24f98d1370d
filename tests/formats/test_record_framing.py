from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.codecs import kernel
from penstock.formats.tfrecord import framing as tfrecord
from penstock.formats.tfrecord.framing import are_whole, frame, is_whole, masked_crc32c, scan


@pytest.fixture(params=["extension", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to the same answers."""
    if request.param == "python":
        monkeypatch.setattr(kernel, "native_extension", lambda: None)
    elif kernel.native_extension() is None:
        pytest.skip("the extension is not built")
    return str(request.param)


def unmasked(crc: int) -> int:
    rotated = (crc - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated << 15 | rotated >> 17) & 0xFFFFFFFF


# RFC 3720, B.4
KNOWN = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize(("data", "expected"), KNOWN)
def test_the_checksum_is_that_of_the_standard(way: str, data: bytes, expected: int) -> None:
    assert unmasked(masked_crc32c(data)) == expected


@given(st.integers(0, 20_000), st.integers(0, 7))
def test_the_extension_and_python_have_the_same_checksum(size: int, start: int) -> None:
    if kernel.native_extension() is None:
        pytest.skip("the extension is not built")
    data = np.random.default_rng(size).integers(0, 256, size + start, dtype=np.uint8).tobytes()
    crc = tfrecord._crc32c(data[start:])
    assert unmasked(masked_crc32c(memoryview(data)[start:])) == crc


def test_a_large_checksum_is_the_same_without_the_gil() -> None:
    data = np.random.default_rng(1).integers(0, 256, 400_000, dtype=np.uint8).tobytes()
    assert unmasked(masked_crc32c(data)) == tfrecord._crc32c(data)
    assert is_whole(frame(data), 12, len(data))


def test_a_record_is_length_and_payload_each_with_its_checksum(way: str) -> None:
    record = frame(b"penstock")
    length = struct.pack("<Q", 8)
    crcs = [struct.pack("<I", masked_crc32c(part)) for part in (length, b"penstock")]
    assert record == length + crcs[0] + b"penstock" + crcs[1]


def in_one(places: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Places in the only buffer that there is."""
    return np.insert(places, 0, 0, axis=1)


payloads = st.lists(st.binary(max_size=60), max_size=8)


@given(payloads)
def test_scanning_finds_every_record(contents: list[bytes]) -> None:
    data = b"".join(map(frame, contents))
    found = scan(data)
    assert not found.damage
    assert [data[offset : offset + length] for offset, length in found.places.tolist()] == contents
    assert are_whole((data,), in_one(found.places)).all()


def test_scanning_finds_more_records_than_it_has_room_for_at_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "_ROOM", 3)
    data = b"".join(frame(bytes(size)) for size in range(10))
    assert scan(data).places[:, 1].tolist() == list(range(10))


def test_a_flipped_bit_is_noticed_wherever_it_is(way: str) -> None:
    records = [frame(b"first"), frame(b"second one"), frame(b"third")]
    data = b"".join(records)
    start, end = len(records[0]), len(records[0]) + len(records[1])
    for bit in range(start * 8, end * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        found = scan(bytes(damaged))
        if bit // 8 < start + 12:
            assert (found.damage, found.damage_offset) == ("the checksum of a length does not match", start)
            assert len(found.places) == 1
        else:
            assert are_whole((bytes(damaged),), in_one(found.places)).tolist() == [True, False, True]


def test_a_file_that_is_cut_anywhere_is_cut(way: str) -> None:
    records = [frame(b"first"), frame(b"second")]
    data = b"".join(records)
    for size in range(1, len(data)):
        found = scan(data[:size])
        assert bool(found.damage) == (size != len(records[0]))
        if size > len(records[0]):
            assert found.damage_offset == len(records[0])


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40])
def test_a_huge_length_with_a_right_checksum_costs_no_memory(way: str, length: int) -> None:
    head = struct.pack("<Q", length)
    found = scan(frame(b"x") + head + struct.pack("<I", masked_crc32c(head)) + bytes(20))
    assert "begins here, and 16 are left" in found.damage
    assert found.damage_offset == 17


def test_places_outside_of_the_data_are_refused() -> None:
    native: Any = kernel.native_extension()
    if native is None:
        pytest.skip("the extension is not built")
    answer = np.zeros(1, np.uint8)
    outside = ([0, -1, 2], [0, 0, -1], [0, 0, 5], [0, 2**62, 2**62], [0, 9, 0], [1, 0, 1], [-1, 0, 1])
    for place in outside:
        with pytest.raises(ValueError, match="outside"):
            native.check_records((b"12345678",), np.array([place], np.int64), answer)
    with pytest.raises(ValueError, match="room for 2 items"):
        native.check_records((bytes(40),), np.array([[0, 0, 4], [0, 4, 4]], np.int64), answer)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (5, 0, 0), (3, 0, 7), (100, 200_000, 1)])
def test_a_payload_in_pieces_has_the_ends_of_the_whole(way: str, sizes: tuple[int, ...]) -> None:
    pieces = tuple(bytes(range(256)) * (size // 256) + bytes(size % 256) for size in sizes)
    views = tuple(memoryview(piece) for piece in pieces)
    whole = (b"".join(pieces), b"", b"")
    assert tfrecord.ends_of_records(views + whole) == tfrecord.ends_of_records(whole) * 2


def test_a_piece_that_is_no_bytes_is_refused(way: str) -> None:
    with pytest.raises(TypeError):
        tfrecord.ends_of_records((b"abc", "text", b""))
