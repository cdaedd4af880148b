"""Context: features of users, arms and pairs, and models of how outcomes depend on them.

``features`` declares features, ``frames`` standardises them, ``encoding`` turns contexts into vectors. ``models`` says
which entries share parameters, ``context`` puts all of this together for a problem. ``design`` lays out the features of
entries, and ``sums`` adds up the exact statistics of regression models.
"""

from typing import TYPE_CHECKING

from superarm._renamed import suggest_names
from superarm.context import models
from superarm.context.context import Context, EncodedContext
from superarm.context.features import Features
from superarm.context.frames import FeatureMoments, Frame, frame_number
from superarm.context.models import LinearModel, LogisticModel, Model, Segments

__all__ = [
    "Context",
    "EncodedContext",
    "FeatureMoments",
    "Features",
    "Frame",
    "LinearModel",
    "LogisticModel",
    "Model",
    "Segments",
    "frame_number",
    "models",
]

if not TYPE_CHECKING:
    __getattr__ = suggest_names(__name__)
