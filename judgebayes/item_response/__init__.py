"""How able judges are and how hard items: the 2PL model.

It aggregates nothing.
"""

from judgebayes.item_response.irt import FittedItemResponse, ItemResponse, Shares, variance_shares

__all__ = ["FittedItemResponse", "ItemResponse", "Shares", "variance_shares"]
