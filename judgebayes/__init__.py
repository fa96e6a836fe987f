"""Aggregation and calibration of LLM judges.

From votes to calibrated probabilities::

    votes, coding = judgebayes.encode(frame, item="item", judge="judge", vote="vote")
    labels = coding.labels(frame, label="label")
    fit = judgebayes.Davidson().fit(votes, labels)
    table = coding.decode(fit(votes))

Importing this package imports nothing else, changes no setting and reads no data: names are loaded
from `__init__.pyi` when they are used.
"""

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
