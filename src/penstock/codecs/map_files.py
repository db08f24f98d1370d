"""GDAL behind one door: rasters and vector layers are opened here and nowhere else.

GDAL chooses a driver by what stands in a file, and some of its drivers read whatever other file or address they find
there: a text called x.tif may be a VRT over /etc/passwd, or a WMS that asks a server. So the first bytes decide here
which driver opens a file, and only drivers are used that read nothing but that file:

| first bytes of                                | driver                         |
|-----------------------------------------------|--------------------------------|
| TIFF, BigTIFF (GeoTIFF, COG)                   | GTiff                          |
| JPEG, PNG, WebP, BMP, GIF                      | JPEG, PNG, WEBP, BMP, GIF      |
| JPEG 2000                                     | JP2OpenJPEG                    |
| anything else                                 | those of `allow_drivers`       |
| GeoJSON, GeoPackage, shapefile, FlatGeobuf     | the driver of that format      |

Side files (overviews, masks) and overviews that a raster's metadata name are looked at in the same way, a GeoJSON must
not fetch its coordinate system, and GDAL's own network file systems are closed while it reads.
"""

from __future__ import annotations

import html
import re
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.codecs.headers import UnreadableImage, sniff
from penstock.errors import OptionError, nearest, require
from penstock.storage.documents import load_json
from penstock.storage.locations import readable_name
from penstock.storage.plain_files import open_file, read_file, read_text

# Enough for the row of blocks under one row of tiles; GDAL would take 5 % of the machine.
CACHE_BYTES = 64 << 20

_DRIVERS = {"tiff": "GTiff", "jpeg": "JPEG", "png": "PNG", "webp": "WEBP", "bmp": "BMP", "gif": "GIF"}
_JPEG_2000 = (b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")
_ERDAS = b"EHFA_HEADER_TAG"  # overviews of old programs, by GDAL's own reader of that one format
_SIDE_ENDINGS = (".ovr", ".OVR", ".msk", ".MSK")
_BESIDE = ":::BASE:::"  # GDAL's word for "in the folder of the raster"

_GEOPACKAGES = (b"GPKG", b"GP10", b"GP11")  # at byte 68: the application that a SQLite file belongs to
_LAYER_FORMATS = "GeoJSON, GeoPackage, shapefile or FlatGeobuf"
# A coordinate system by address, and escapes that could hide one. GDAL's parser also takes single quotes.
_DOUBTFUL_JSON = re.compile(rb"""["'](?:url|link)|\\u00""", re.IGNORECASE)

_VRT_SOURCES = re.compile(r"<Source(?:Filename|Dataset)([^>]*)>([^<]*)<")

_warnings_lock = threading.Lock()


class RefusedFile(UnreadableImage):
    """A file of a format that is not opened unasked: what it is, and what to do about it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def gdal() -> Any:
    """A context in which GDAL keeps its cache small, looks up side files by name and opens nothing over the network."""
    rasterio = require("rasterio", "geo", "Reading rasters")
    return rasterio.Env(
        GDAL_CACHEMAX=CACHE_BYTES,
        GDAL_DISABLE_READDIR_ON_OPEN="TRUE",
        CPL_VSIL_CURL_ALLOWED_FILENAME="none",
    )


def gdal_errors() -> tuple[type[Exception], ...]:
    """What reading a damaged raster raises; some of GDAL's own errors pass through rasterio as they are."""
    errors = require("rasterio.errors", "geo", "Reading rasters")
    own = require("rasterio._err", "geo", "Reading rasters")
    return errors.RasterioError, errors.CRSError, own.CPLE_BaseError


def check_drivers(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of GDAL's drivers as GDAL spells them; those that it does not have are an error."""
    given = names.split(",") if isinstance(names, str) else list(names or ())
    if not given:
        return ()
    rasterio = require("rasterio", "geo", "Reading rasters")
    with rasterio.Env() as environment:
        known = {name.lower(): name for name in environment.drivers()}
    unknown = [name for name in given if name.strip().lower() not in known]
    if unknown:
        raise OptionError(f"allow_drivers: GDAL has no driver {unknown[0]!r}.{nearest(unknown[0], [*known.values()])}")
    return tuple(known[name.strip().lower()] for name in given)


def open_raster(path: Path, threads: int = 1, allow_drivers: Sequence[str] = ()) -> Any:
    """Open a raster, whose blocks are decoded by so many threads, or raise RefusedFile."""
    drivers = _raster_drivers(path, allow_drivers)
    for side in _side_files(path):
        open_raster(side).close()
    if "VRT" in drivers:
        _check_vrt(path)
    dataset = _opened(path, drivers, {"NUM_THREADS": str(threads)} if threads > 1 else {})
    if drivers[0] in _trusted() and not _has_own_overviews(path, dataset):
        dataset.close()
        raise RefusedFile("its metadata name another file as its overviews", "Export it again, without that entry")
    return dataset


def _trusted() -> tuple[str, ...]:
    return (*_DRIVERS.values(), "JP2OpenJPEG")


def _raster_drivers(path: Path, allow_drivers: Sequence[str]) -> tuple[str, ...]:
    """The drivers that may open a file; those that were allowed only where no other knows its first bytes."""
    _check_local(path)
    with open_file(path) as file:
        start = file.read(512)
    kind = sniff(start)
    if kind:
        return (_DRIVERS[kind],)
    if start.startswith(_JPEG_2000):
        return ("JP2OpenJPEG",)
    if allow_drivers:
        return tuple(allow_drivers)
    if not start.strip(b"\0"):
        raise UnreadableImage("the file is empty" if not start else "the file begins with zeros")
    raise _unknown_raster(start)


def _unknown_raster(start: bytes) -> RefusedFile:
    text = start.lstrip(b"\xef\xbb\xbf \r\n\t")
    name = next((name for mark, name in ((b"<VRT", "VRT"), (b"<GDAL_WMS", "WMS")) if text.startswith(mark)), "")
    if name:
        what = f"it is a {name} file, which names other files or servers to read"
        remedy = "Convert it to GeoTIFF (gdal_translate)"
    else:
        what, remedy = "it is no TIFF, JPEG, JPEG 2000, PNG, WebP, BMP or GIF", "Convert it to GeoTIFF"
    example = name or "HFA"
    return RefusedFile(what, f"{remedy}, or allow the driver of GDAL: allow_drivers=[{example!r}]")


def _check_local(path: Path) -> None:
    """Nothing but a file of the system: GDAL takes paths that begin with /vsi as addresses and archives."""
    if path.absolute().as_posix().startswith("/vsi"):
        raise RefusedFile("it is a virtual path of GDAL", "Name a file on the disk")
    if readable_name(str(path)) != str(path):
        raise RefusedFile("its name is not UTF-8, and GDAL opens no such file", "Rename it")
    if not path.is_file():
        path.stat()  # raises what is wrong, where it is not there
        raise RefusedFile("it is not a file", "Name a file")


def _check_vrt(path: Path) -> None:
    """Each source of a VRT is a file here: GDAL gives black pixels without a word for some that it cannot open."""
    for attributes, text in _VRT_SOURCES.findall(read_text(path, errors="replace")):
        name = html.unescape(text).strip()
        source = path.absolute().parent / name if re.search(r"relativeToVRT\s*=\s*[\"']1", attributes) else Path(name)
        if source.as_posix().startswith("/vsi") or not source.is_file():
            raise RefusedFile(f"its source {name!r} is not a file on this machine", "Correct its path in the VRT")


def _side_files(path: Path) -> list[Path]:
    return [side for ending in _SIDE_ENDINGS if (side := Path(f"{path}{ending}")).is_file()]


def _opened(path: Path, drivers: Sequence[str], options: dict[str, str]) -> Any:
    """By the first driver that can. That a photo is on no map is not worth a warning."""
    rasterio = require("rasterio", "geo", "Reading rasters")
    # Filters of warnings belong to the process, so that only one thread may change them at a time.
    with gdal(), _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        for driver in drivers[:-1]:
            try:
                return rasterio.open(path.absolute(), driver=driver, **options)
            except rasterio.errors.RasterioIOError:
                continue
        return rasterio.open(path.absolute(), driver=drivers[-1], **options)


def _has_own_overviews(path: Path, dataset: Any) -> bool:
    """Whether overviews lie in the file, or beside it in a format that we open; GDAL opens what the metadata name."""
    named = dataset.tags(ns="OVERVIEWS").get("OVERVIEW_FILE")
    if named is None:
        return True
    name = named.removeprefix(_BESIDE)
    if not named.startswith(_BESIDE) or name != Path(name).name or not (beside := path.parent / name).is_file():
        return False
    with open_file(beside) as file:
        start = file.read(len(_ERDAS))
    return start == _ERDAS or sniff(start) == "tiff"


def read_layer(path: Path) -> tuple[list[str], Any]:
    """The names of the layers with geometry in a file, and its features where there is just one layer."""
    pyogrio = require("pyogrio", "geo", "Reading vector layers")
    address = _layer_address(path)
    layers = [str(name) for name, kind in pyogrio.list_layers(address) if kind]
    return layers, pyogrio.read_dataframe(address, layer=layers[0]) if len(layers) == 1 else None


def layer_errors() -> tuple[type[Exception], ...]:
    """What reading a damaged layer raises: GDAL's own words, geometry that is none, names that are no UTF-8."""
    errors = require("pyogrio.errors", "geo", "Reading vector layers")
    shapely = require("shapely", "geo", "Reading vector layers")
    own = errors.DataSourceError, errors.DataLayerError, errors.CRSError
    return (*own, shapely.errors.ShapelyError, ValueError)


# A GeoJSON is read by Python too up to this size; in memory it is some times as large.
_LARGEST_LOOKED_AT = 64 << 20


def _layer_address(path: Path) -> str:
    """How pyogrio, which can't be told a driver, opens a file by the driver of its first bytes."""
    _check_local(path)
    with open_file(path) as file:
        start = file.read(512)
    if not start:
        raise RefusedFile("the file is empty", "Export it again, or remove it")
    whole = str(path.absolute())
    if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
        _check_crs(path)
        _check_features(path)
        return f"GeoJSON:{whole}"
    is_geopackage = start.startswith(b"SQLite format 3\0") and start[68:72] in _GEOPACKAGES
    is_shapefile = start.startswith(b"\0\0\x27\x0a") and path.suffix.lower() == ".shp"
    if is_geopackage or is_shapefile or start.startswith(b"fgb\x03fgb"):
        return whole
    raise RefusedFile(f"it is no {_LAYER_FORMATS}", "Export it as .gpkg or .geojson")


def _check_crs(path: Path) -> None:
    """A GeoJSON, or any geometry in it, may say that its coordinate system is at an address, which GDAL would fetch."""
    data = read_file(path)
    if not _DOUBTFUL_JSON.search(data):
        return

    def refuse_links(pairs: list[tuple[str, Any]]) -> bool:
        """Whether an object says that it is a link; nothing else of it is kept."""
        if any(name.lower() == "crs" and value is True for name, value in pairs):
            raise RefusedFile("its coordinate system (crs) is an address", "Save it with the name of its CRS")
        kinds = [str(value).lower() for name, value in pairs if name.lower() == "type"]
        return any(kind.startswith(("url", "link")) for kind in kinds)

    # What Python cannot read is refused: GDAL's parser takes more than JSON, such as comments.
    load_json(data, refuse_links)


def _check_features(path: Path) -> None:
    """GDAL leaves out what does not call itself a Feature without a word: a damaged file would lose boxes."""
    if path.stat().st_size > _LARGEST_LOOKED_AT:
        return
    document = load_json(read_file(path))
    features = document.get("features") if isinstance(document, dict) else None
    for number, feature in enumerate(features if isinstance(features, list) else ()):
        kind = feature.get("type") if isinstance(feature, dict) else None
        if kind != "Feature":
            what = f"item {number + 1} of its features says that it is of the type {kind!r}"
            raise RefusedFile(f"{what}, and GDAL would leave it out", 'Write "type": "Feature", or remove the item')
