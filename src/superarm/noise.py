"""The old name of :mod:`superarm.streams`."""

from superarm._renamed import old_names

_RENAMED = {"Noise": "Stream", "Streams": "RunStreams", "noise": "new_stream", "streams": "run_streams"}
_SAME = {name: name for name in ("beta", "gamma", "integer", "mix", "normal", "quantile", "seek", "uniform")}

__getattr__ = old_names(__name__, {old: f"superarm.streams:{new}" for old, new in {**_RENAMED, **_SAME}.items()})
