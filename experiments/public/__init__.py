"""The public data sets of the experiments: their sources, download and conversion."""

from judgebayes.experiments.public.sources import SOURCES, Source
from judgebayes.experiments.public.store import cache_folder, get, is_whole, table

__all__ = ["SOURCES", "Source", "cache_folder", "get", "is_whole", "table"]
