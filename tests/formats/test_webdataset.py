from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import pixels
from penstock.codecs.images import encode_image
from penstock.formats.checking import check
from record_making import image_bytes, pair, write_tar


def five(folder: Path, name: str = "five.tar", **options: Any) -> Path:
    return write_tar(folder / name, [file for number in range(5) for file in pair(number)], **options)


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


# Fields


def test_images_and_classes_are_recognised(tmp_path: Path) -> None:
    source = ps.WebDataset(five(tmp_path))
    assert source.classes == ("0", "1")
    assert source.column("label").tolist() == [0, 1, 0, 1, 0]
    assert source.column("key").tolist() == [f"{number:06d}" for number in range(5)]
    np.testing.assert_array_equal(source[3]["image"], pixels(3, 23, 16))
    assert source.image_sizes(np.array([3])).tolist() == [[23, 16]]


def test_every_usual_ending_is_recognised(tmp_path: Path) -> None:
    facts = {"key": "a/1.old", "group": "site", "boxes": [[1, 2, 3.5, 4]], "box_label": ["oak"], "more": 7}
    files = [
        ("a/1.jpg", image_bytes(1, codec="jpeg")),
        ("a/1.cls", b" 2\n"),
        ("a/1.txt", "schön".encode()),
        ("a/1.json", json.dumps(facts).encode()),
        ("a/1.npy", npy(np.arange(3, dtype=np.int16))),
        ("a/1.depth.npy", npy(np.ones((2, 2), np.float32))),
        ("a/1.seg.png", encode_mask(np.array([[0, 7], [3, 1]], np.uint8))),
        ("__meta__.json", b"about the archive"),
        ("README", b"no sample"),
    ]
    source = ps.WebDataset(write_tar(tmp_path / "a.tar", files))
    sample = source[0]
    assert (sample["key"], sample["group"], sample["text"]) == ("a/1.old", "site", "schön")
    assert source.classes == ("0", "1", "2", "oak")
    assert (sample["label"], sample["box_label"].tolist()) == (2, [3])
    assert sample["boxes"].tolist() == [[1, 2, 3.5, 4]]
    assert sample["array"].tolist() == [0, 1, 2]
    assert sample["depth"].dtype == np.float32
    assert sample["seg"].tolist() == [[0, 7], [3, 1]]


def encode_mask(mask: Any) -> bytes:
    import cv2

    return bytes(cv2.imencode(".png", mask)[1])


def test_fields_are_mapped(tmp_path: Path) -> None:
    facts = [{"tags": {"name": name, "age": age}, "caption": f"a {name}"} for name, age in (("cat", 3.5), ("dog", 2))]
    files = [
        file
        for number, fact in enumerate(facts)
        for file in ((f"{number}.img.PNG", image_bytes(number)), (f"{number}.json", json.dumps(fact).encode()))
    ]
    source = ps.WebDataset(
        write_tar(tmp_path / "a.tar", files),
        fields={
            "image": "img.jpg;img.png",
            "label": "json:tags.name",
            "age": ps.Field("json:tags.age", "number", "float32"),
            "caption": "json:caption",
        },
    )
    assert source.classes == ("cat", "dog")
    assert (source[1]["label"], source[1]["age"], source[1]["caption"]) == (1, 2.0, "a dog")


def test_a_label_in_json_is_recognised(tmp_path: Path) -> None:
    files = [(f"{n}.{e}", d) for n in range(2) for e, d in (("png", image_bytes(n)), ("json", b'{"label": "elm"}'))]
    assert ps.WebDataset(write_tar(tmp_path / "a.tar", files)).classes == ("elm",)


def test_an_ending_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=r"'pngs': the first samples have no such file. There are cls, png.*'png'"):
        ps.WebDataset(five(tmp_path), fields={"image": "pngs"})


# Archives


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_read(tmp_path: Path, form: int) -> None:
    key = "/".join(["a-long-folder-name-with-ünicode"] * 9) + "/" + "k" * 120
    source = ps.WebDataset(write_tar(tmp_path / "a.tar", [*pair(1, key), *pair(2)], form=form))
    assert source.column("key").tolist() == [key, "000002"]
    np.testing.assert_array_equal(source[1]["image"], pixels(2, 22, 16))


def test_several_shards_in_natural_order_and_their_splits(tmp_path: Path) -> None:
    for number in (10, 9):
        write_tar(tmp_path / f"train-{number}.tar", pair(number))
    source = ps.WebDataset(tmp_path)
    assert source.column("key").tolist() == ["000009", "000010"]
    assert source[0]["split"] == "train"


def test_a_compressed_archive_reads_like_a_plain_one(tmp_path: Path) -> None:
    source = ps.WebDataset(five(tmp_path, "five.tar.gz", mode="w:gz"))
    np.testing.assert_array_equal(source[4]["image"], pixels(4, 24, 16))
    assert source.origin(0).file.endswith("five.tar.gz")


def test_flows_read_it_as_they_read_a_pack(tmp_path: Path) -> None:
    files = [
        (f"{n}.{ending}", data)
        for n in range(12)
        for ending, data in (("jpg", encode_image(pixels(n, 60, 40), "jpeg")), ("cls", str(n % 3).encode()))
    ]
    source = ps.WebDataset(write_tar(tmp_path / "a.tar", files))
    pack = ps.pack(source, tmp_path / "a.pack")
    flows = [
        ps.Flow(one, seed=5, workers=workers).shuffle().map(ps.augment.RandomResizedCrop(16)).batch(5)
        for one in (source, pack)
        for workers in (0, 2)
    ]
    for batches in zip(*flows, strict=True):
        for name in ("image", "label", "index"):
            assert all(np.array_equal(batch[name], batches[0][name]) for batch in batches)


# Bad input


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "C:/evil"])
def test_a_path_that_climbs_out_is_refused_and_named(tmp_path: Path, name: str) -> None:
    path = write_tar(tmp_path / "a.tar", [*pair(1), *pair(2, name)])
    with pytest.raises(ps.DataError, match=rf"a.tar: {name}.png at byte \d[\d,]*: its path climbs out of its folder"):
        ps.WebDataset(path)


def test_a_link_is_refused_and_named(tmp_path: Path) -> None:
    path = five(tmp_path)
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("9.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ps.DataError, match=r"9.png at byte [\d,]+: it is a link to '/etc/passwd'"):
        ps.WebDataset(path)


def test_a_sample_without_its_label_is_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [*pair(1), pair(2)[0], *pair(3), pair(4)[1]])
    with pytest.raises(ps.DataError) as caught:
        ps.WebDataset(path)
    texts = [problem.what for problem in caught.value.problems]
    assert "000002 at byte" in texts[0] and texts[0].endswith("has no label (.cls)")
    assert "000004 at byte" in texts[1] and "image" in texts[1]
    kept = ps.WebDataset(path, on_missing="skip")
    assert kept.column("key").tolist() == ["000001", "000003"]
    assert [problem.warning for problem in kept.problems()] == [True, True]


def test_a_key_that_comes_again_is_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [*pair(1), *pair(2), *pair(1)])
    with pytest.raises(ps.DataError, match=r"000001.png at byte [\d,]+: the key '000001' was there before"):
        ps.WebDataset(path)


def test_a_file_that_is_there_twice_is_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [*pair(1), pair(1)[1]])
    with pytest.raises(ps.DataError, match=r"000001.cls at byte [\d,]+ is there twice"):
        ps.WebDataset(path)


def test_an_archive_that_is_cut_anywhere_is_told(tmp_path: Path) -> None:
    path = five(tmp_path)
    data = path.read_bytes()
    source = ps.WebDataset(path)
    end = int((source.columns["at.offset"] + source.columns["at.length"]).max())
    for size in [1, 100, *range(512, end, 512), end - 1, end]:
        cut = tmp_path / f"cut-{size}.tar"
        cut.write_bytes(data[:size])
        with pytest.raises(ps.DataError, match=rf"cut-{size}.tar: (is cut short|is no tar)"):
            ps.WebDataset(cut)


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    path = five(tmp_path)
    header = int(ps.WebDataset(path).columns["at.offset"][3])
    data = bytearray(path.read_bytes())
    data[header + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ps.DataError, match=rf"five.tar: is damaged at byte {header:,}"):
        ps.WebDataset(path)


def test_an_empty_file_and_an_archive_without_samples_are_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty.tar"
    empty.write_bytes(b"")
    with pytest.raises(ps.DataError, match=r"empty.tar: is empty"):
        ps.WebDataset(empty)
    with pytest.raises(ps.DataError, match=r"none.tar: holds no sample"):
        ps.WebDataset(write_tar(tmp_path / "none.tar", [("README", b"x")]))


def test_an_image_that_is_none_is_told_with_archive_and_byte(tmp_path: Path) -> None:
    source = ps.WebDataset(write_tar(tmp_path / "a.tar", [*pair(1), ("2.png", b"no image"), ("2.cls", b"1")]))
    with pytest.raises(ps.HopError, match=r"sample 1 \(2\): decode failed: .*a.tar at byte [\d,]+: "):
        source[1]
    assert [problem.file for problem in ps.check(source, decode=True).errors] == [str(tmp_path / "a.tar")]


def test_nothing_pickled_is_read(tmp_path: Path) -> None:
    harmful = npy(np.array([{}], object), allow_pickle=True)
    with pytest.raises(ps.PenstockError, match="nothing pickled is"):
        ps.WebDataset(write_tar(tmp_path / "a.tar", [*pair(1), ("000001.npy", harmful)]))


@pytest.mark.parametrize("facts", [b"{", b'{"boxes": [[1, 2]], "box_label": [1]}', b'{"boxes": [], "box_label": [1]}'])
def test_json_that_does_not_fit_is_told(tmp_path: Path, facts: bytes) -> None:
    good = b'{"boxes": [[1, 2, 3, 4]], "box_label": [1]}'
    files = [("1.png", image_bytes(1)), ("1.json", good), ("2.png", image_bytes(2)), ("2.json", facts)]
    source = ps.WebDataset(write_tar(tmp_path / "a.tar", files))
    with pytest.raises(
        ps.HopError, match=r"a.tar at byte [\d,]+: (its JSON cannot be read|its boxes are|it has 0 boxes)"
    ):
        source[1]


def test_a_class_that_is_neither_number_nor_name_is_told(tmp_path: Path) -> None:
    files = [
        ("1.png", image_bytes(1)),
        ("1.json", b'{"label": 1}'),
        ("2.png", image_bytes(2)),
        ("2.json", b'{"label": []}'),
    ]
    with pytest.raises(ps.DataError, match=r"2 at byte [\d,]+: its class is \[\]"):
        ps.WebDataset(write_tar(tmp_path / "a.tar", files))


def test_gzip_that_is_cut_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(five(tmp_path).read_bytes())[:-30])
    with pytest.raises(ps.DataError, match=r"a.tar.gz: its gzip data ends too early"):
        ps.WebDataset(path)


def tar_with_pax(path: Path, **facts: str) -> Path:
    """An archive of two samples; the last member says more of itself in a header before it."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(2):
            for name, data in pair(number):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                member.pax_headers = facts if name == "000001.cls" else {}
                archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("size", ["-1536", "-1024", "-512", "-1", str(1 << 63), str(1 << 80), "0x10", "nan"])
def test_a_size_that_leads_back_or_beyond_every_file_ends_with_an_error(size: str, tmp_path: Path) -> None:
    path = tar_with_pax(tmp_path / "a.tar", size=size)
    try:
        source = ps.WebDataset(path)
    except ps.DataError as error:
        assert str(path) in str(error)
    else:
        assert len(source) == 2, "a size that is no number is not taken"


def test_headers_of_headers_without_end_are_an_error(tmp_path: Path) -> None:
    member = tarfile.TarInfo("././@LongLink")
    member.size, member.type = 4, tarfile.GNUTYPE_LONGNAME
    header = member.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tar").write_bytes((header + b"abc\0".ljust(512, b"\0")) * 5000 + bytes(1024))
    with pytest.raises(ps.DataError, match=r"a\.tar"):
        ps.WebDataset(tmp_path / "a.tar")


@pytest.mark.parametrize("kind", ["CHRTYPE", "BLKTYPE", "FIFOTYPE", "LNKTYPE", "SYMTYPE"])
def test_devices_pipes_and_links_in_an_archive_are_named_and_not_opened(kind: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data in pair(0):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        member = tarfile.TarInfo("000001.png")
        member.type, member.linkname, member.devmajor, member.devminor = getattr(tarfile, kind), "/etc/passwd", 1, 5
        archive.addfile(member)
    try:
        source = ps.WebDataset(tmp_path / "a.tar")
    except ps.DataError as error:
        assert "000001.png" in str(error)
    else:
        assert any("000001" in problem.what for problem in check(source).problems), check(source)
