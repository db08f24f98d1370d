"""Steps on samples: crops, sizes and flips that images, masks and boxes follow together, and steps on pixels.

steps        the two kinds: Geometric (gives views) and Pixelwise (gives pixels)
resizes, crops, flips, pixelwise    the steps themselves
views        what is seen of an image, as numbers        composing    several views as one
applying     a step on one sample                        boxes        boxes under a view
"""

from penstock.augment.applying import apply, apply_geometric, apply_pixelwise, image_size
from penstock.augment.composing import composed, fusible, views_of
from penstock.augment.geometric import CenterCrop, HorizontalFlip, RandomCrop, RandomResizedCrop, Resize, VerticalFlip
from penstock.augment.pixelwise import Grey, Normalize
from penstock.augment.steps import Geometric, Pixelwise, is_geometric
from penstock.augment.views import Views

__all__ = [
    "CenterCrop",
    "Geometric",
    "Grey",
    "HorizontalFlip",
    "Normalize",
    "Pixelwise",
    "RandomCrop",
    "RandomResizedCrop",
    "Resize",
    "VerticalFlip",
    "Views",
    "apply",
    "apply_geometric",
    "apply_pixelwise",
    "composed",
    "fusible",
    "image_size",
    "is_geometric",
    "views_of",
]
