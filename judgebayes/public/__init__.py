"""The public data sets that the experiments use: where they come from, fetched and converted.

This package may not import `simulate` or any package after it.
"""

from judgebayes.public.sources import SOURCES, Source
from judgebayes.public.store import cache_folder, get, is_whole, table

__all__ = ["SOURCES", "Source", "cache_folder", "get", "is_whole", "table"]
