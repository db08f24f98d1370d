"""Penstock: raw images, rasters and videos into packed datasets that feed training at full speed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

AUTO = "auto"

# Where each public name lives. Nothing is imported before it is used: `import penstock` stays instant.
_HOMES = {
    "Arrays": "penstock.sources.arrays.arrays",
    "Boxes": "penstock.sources.boxes.boxes",
    "DeepEthogram": "penstock.sources.deepethogram.deepethogram",
    "HDF5": "penstock.sources.hdf5.hdf5",
    "HuggingFace": "penstock.sources.arrow.hugging_face",
    "Images": "penstock.sources.images.images",
    "MDS": "penstock.sources.mds.mds",
    "Parquet": "penstock.sources.arrow.parquet",
    "Rasters": "penstock.sources.rasters.rasters",
    "TFRecords": "penstock.sources.records.tfrecords",
    "Videos": "penstock.sources.videos.videos",
    "WebDataset": "penstock.sources.tars.webdataset",
    "check": "penstock.sources.checking",
    "read_pascal_voc": "penstock.sources.boxes.voc",
    "split_raster": "penstock.sources.rasters.cropping",
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
    "Export": "penstock.exporting.manifest",
    "ExportOptions": "penstock.exporting.options",
    "export": "penstock.exporting.exporter",
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
    from penstock.errors import PackError as PackError
    from penstock.errors import PenstockError as PenstockError
    from penstock.errors import Problem as Problem
    from penstock.errors import RecipeError as RecipeError
    from penstock.errors import TrainingError as TrainingError
    from penstock.exporting.exporter import export as export
    from penstock.exporting.manifest import Export as Export
    from penstock.exporting.options import ExportOptions as ExportOptions
    from penstock.flow.flow import Flow as Flow
    from penstock.flow.flow import mix as mix
    from penstock.flow.streams.sequences import from_sequence as from_sequence
    from penstock.flow.streams.streams import from_generator as from_generator
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
    from penstock.sources.arrays.arrays import Arrays as Arrays
    from penstock.sources.arrow.hugging_face import HuggingFace as HuggingFace
    from penstock.sources.arrow.parquet import Parquet as Parquet
    from penstock.sources.boxes.boxes import Boxes as Boxes
    from penstock.sources.boxes.voc import read_pascal_voc as read_pascal_voc
    from penstock.sources.checking import check as check
    from penstock.sources.deepethogram.deepethogram import DeepEthogram as DeepEthogram
    from penstock.sources.hdf5.hdf5 import HDF5 as HDF5
    from penstock.sources.images.images import Images as Images
    from penstock.sources.mds.mds import MDS as MDS
    from penstock.sources.rasters.cropping import split_raster as split_raster
    from penstock.sources.rasters.rasters import Rasters as Rasters
    from penstock.sources.records.tfrecords import TFRecords as TFRecords
    from penstock.sources.tars.webdataset import WebDataset as WebDataset
    from penstock.sources.videos.videos import Videos as Videos
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
