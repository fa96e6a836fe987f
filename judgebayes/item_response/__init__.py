"""How able judges are and how hard items: the 2PL model.

It aggregates nothing. This package may not import `panel` or any package after it.
"""

from judgebayes.item_response.irt import FittedItemResponse, ItemResponse, Shares, variance_shares

__all__ = ["FittedItemResponse", "ItemResponse", "Shares", "variance_shares"]
