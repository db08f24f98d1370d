"""Penstock: raw images, rasters and videos into packed datasets that feed training at full speed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

AUTO = "auto"

# Where each public name lives. Nothing is imported before it is used: `import penstock` stays instant.
_HOMES = {
    "Arrays": "penstock.formats.numpy.arrays",
    "Boxes": "penstock.formats.boxes.boxes",
    "DeepEthogram": "penstock.formats.deepethogram.deepethogram",
    "HDF5": "penstock.formats.hdf5.hdf5",
    "HuggingFace": "penstock.formats.arrow.hugging_face",
    "Images": "penstock.formats.images.images",
    "MDS": "penstock.formats.mds.mds",
    "Parquet": "penstock.formats.arrow.parquet",
    "Rasters": "penstock.formats.rasters.rasters",
    "TFRecords": "penstock.formats.tfrecord.tfrecords",
    "Videos": "penstock.formats.videos.videos",
    "WebDataset": "penstock.formats.webdataset.webdataset",
    "check": "penstock.formats.checking",
    "read_pascal_voc": "penstock.formats.boxes.voc",
    "split_raster": "penstock.formats.rasters.cropping",
    "Concat": "penstock.samples",
    "Field": "penstock.samples",
    "Raw": "penstock.samples",
    "Schema": "penstock.samples",
    "Source": "penstock.samples",
    "Store": "penstock.samples",
    "Subset": "penstock.samples",
    "concat": "penstock.samples",
    "augment": "penstock.augment",
    "Flow": "penstock.flow.flow",
    "from_generator": "penstock.flow.streams.streams",
    "from_sequence": "penstock.flow.streams.sequences",
    "mix": "penstock.flow.flow",
    "Pack": "penstock.packing.reader",
    "Export": "penstock.formats.exporting.manifest",
    "ExportOptions": "penstock.formats.exporting.options",
    "export": "penstock.formats.exporting.exporter",
    "PackOptions": "penstock.packing.options",
    "open": "penstock.opening",
    "pack": "penstock.packing.writer",
    "Diagnosis": "penstock.diagnosis.diagnosis",
    "Recipe": "penstock.recipes.recipe",
    "doctor": "penstock.recipes.doctor",
    "Run": "penstock.runs.run",
    "Behaviour": "penstock.tasks.behaviour.behaviour",
    "Classification": "penstock.tasks.classification",
    "Detection": "penstock.tasks.detection.detection",
    "Ethogram": "penstock.results.ethograms",
    "Evaluation": "penstock.prediction.evaluating",
    "Model": "penstock.prediction.models",
    "evaluate": "penstock.prediction.evaluating",
    "load": "penstock.prediction.models",
    "predict": "penstock.prediction.predicting",
    "report": "penstock.reporting.run_reports",
    "DataError": "penstock.errors",
    "HopError": "penstock.errors",
    "MissingExtra": "penstock.errors",
    "PackError": "penstock.errors",
    "PenstockError": "penstock.errors",
    "Problem": "penstock.errors",
    "OptionError": "penstock.errors",
    "RecipeError": "penstock.errors",
    "TrainingError": "penstock.errors",
    "TrainOptions": "penstock.training.options",
    "module_for": "penstock.training.trainers",
    "train": "penstock.training.train",
    "trainer_for": "penstock.training.trainers",
}

# What lives here needs the extra `train`.
_LEARNING = (
    "penstock.tasks.",
    "penstock.training.train",
    "penstock.prediction.models",
    "penstock.prediction.predicting",
)

__all__ = ["AUTO", "__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from penstock import augment as augment
    from penstock.diagnosis.diagnosis import Diagnosis as Diagnosis
    from penstock.errors import DataError as DataError
    from penstock.errors import HopError as HopError
    from penstock.errors import MissingExtra as MissingExtra
    from penstock.errors import OptionError as OptionError
    from penstock.errors import PackError as PackError
    from penstock.errors import PenstockError as PenstockError
    from penstock.errors import Problem as Problem
    from penstock.errors import RecipeError as RecipeError
    from penstock.errors import TrainingError as TrainingError
    from penstock.flow.flow import Flow as Flow
    from penstock.flow.flow import mix as mix
    from penstock.flow.streams.sequences import from_sequence as from_sequence
    from penstock.flow.streams.streams import from_generator as from_generator
    from penstock.formats.arrow.hugging_face import HuggingFace as HuggingFace
    from penstock.formats.arrow.parquet import Parquet as Parquet
    from penstock.formats.boxes.boxes import Boxes as Boxes
    from penstock.formats.boxes.voc import read_pascal_voc as read_pascal_voc
    from penstock.formats.checking import check as check
    from penstock.formats.deepethogram.deepethogram import DeepEthogram as DeepEthogram
    from penstock.formats.exporting.exporter import export as export
    from penstock.formats.exporting.manifest import Export as Export
    from penstock.formats.exporting.options import ExportOptions as ExportOptions
    from penstock.formats.hdf5.hdf5 import HDF5 as HDF5
    from penstock.formats.images.images import Images as Images
    from penstock.formats.mds.mds import MDS as MDS
    from penstock.formats.numpy.arrays import Arrays as Arrays
    from penstock.formats.rasters.cropping import split_raster as split_raster
    from penstock.formats.rasters.rasters import Rasters as Rasters
    from penstock.formats.tfrecord.tfrecords import TFRecords as TFRecords
    from penstock.formats.videos.videos import Videos as Videos
    from penstock.formats.webdataset.webdataset import WebDataset as WebDataset
    from penstock.opening import open as open
    from penstock.packing.options import PackOptions as PackOptions
    from penstock.packing.reader import Pack as Pack
    from penstock.packing.writer import pack as pack
    from penstock.prediction.evaluating import Evaluation as Evaluation
    from penstock.prediction.evaluating import evaluate as evaluate
    from penstock.prediction.models import Model as Model
    from penstock.prediction.models import load as load
    from penstock.prediction.predicting import predict as predict
    from penstock.recipes.doctor import doctor as doctor
    from penstock.recipes.recipe import Recipe as Recipe
    from penstock.reporting.run_reports import report as report
    from penstock.results.ethograms import Ethogram as Ethogram
    from penstock.runs.run import Run as Run
    from penstock.samples import Concat as Concat
    from penstock.samples import Field as Field
    from penstock.samples import Raw as Raw
    from penstock.samples import Schema as Schema
    from penstock.samples import Source as Source
    from penstock.samples import Store as Store
    from penstock.samples import Subset as Subset
    from penstock.samples import concat as concat
    from penstock.tasks.behaviour.behaviour import Behaviour as Behaviour
    from penstock.tasks.classification import Classification as Classification
    from penstock.tasks.detection.detection import Detection as Detection
    from penstock.training.options import TrainOptions as TrainOptions
    from penstock.training.train import train as train
    from penstock.training.trainers import module_for as module_for
    from penstock.training.trainers import trainer_for as trainer_for


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    if home.startswith(_LEARNING):
        from penstock.errors import require_learning

        require_learning(f"penstock.{name}")
    module = importlib.import_module(home)
    value = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
