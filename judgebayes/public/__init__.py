"""The public data sets of the experiments: their sources, download and conversion.

This package may not import `simulate` or any package after it.
"""

from judgebayes.public.sources import SOURCES, Source
from judgebayes.public.store import cache_folder, get, is_whole, table

__all__ = ["SOURCES", "Source", "cache_folder", "get", "is_whole", "table"]
