"""Item response: abilities of judges and difficulties of items by the 2PL model.

It does not aggregate votes. This package may not import `panel` or any package after it.
"""

from judgebayes.item_response.irt import ItemResponse

__all__ = ["ItemResponse"]
