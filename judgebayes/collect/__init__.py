"""Collect votes from judges behind an OpenAI-compatible endpoint.

This is the first half of P1's Algorithm 1 (n votes per item, half of them with the responses swapped)
and of P2's appendix H.1 (the raw answer is kept, a parser reads its verdict, and an unreadable answer is
a missing vote).

This package may not import `plots` or any package after it.
"""
