"""Gathering votes: judges behind an OpenAI-compatible endpoint are asked, and asked again.

The first half of P1's Algorithm 1 (n votes an item, half of them with the responses swapped) and of
P2's appendix H.1 (the raw answer is kept, a parser reads its verdict, what it cannot read is a missing
vote).

This package may not import `public` or any package after it.
"""
