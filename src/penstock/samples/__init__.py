"""The words that everything meets in: field, schema, sample, source, store.

source.py   what a user must write: schema, len, read, decode
store.py    what the inside of Penstock asks: a Source and some thirty members more, each with a default
views.py    samples of other stores: some of them (Subset), or several one after another (Concat)
"""

from penstock.samples.schema import RESERVED, Field, Kind, Raw, Sample, Schema
from penstock.samples.source import Origin, ReadSample, Segment, Source
from penstock.samples.store import FieldsAt, ImagesAt, Numbers, SourceStore, Store, as_store, checked_index
from penstock.samples.views import Concat, Subset, View, concat

__all__ = [
    "RESERVED",
    "Concat",
    "Field",
    "FieldsAt",
    "ImagesAt",
    "Kind",
    "Numbers",
    "Origin",
    "Raw",
    "ReadSample",
    "Sample",
    "Schema",
    "Segment",
    "Source",
    "SourceStore",
    "Store",
    "Subset",
    "View",
    "as_store",
    "checked_index",
    "concat",
]
