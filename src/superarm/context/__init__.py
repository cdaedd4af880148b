"""Context: features of users, arms and pairs, and models of how outcomes depend on them.

features: what is declared · encoding: contexts as vectors · frames: standardisation · models: which entries share
parameters · context: all of this for a problem · design: the features of entries · sums: exact statistics
"""

from superarm.context import models
from superarm.context.context import Context, Contexts, EncodedContext
from superarm.context.features import Features
from superarm.context.frames import FeatureMoments, Frame, Frames, frame_number
from superarm.context.models import LinearModel, LogisticModel, Model, Segments
from superarm.context.sums import RegressionSums, RegressionTally

__all__ = [
    "Context",
    "Contexts",
    "EncodedContext",
    "FeatureMoments",
    "Features",
    "Frame",
    "Frames",
    "LinearModel",
    "LogisticModel",
    "Model",
    "RegressionSums",
    "RegressionTally",
    "Segments",
    "frame_number",
    "models",
]
