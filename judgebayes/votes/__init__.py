"""The edge: tables of votes in, integer arrays out, tables back."""

from judgebayes.votes.array import MISSING, Votes, from_counts
from judgebayes.votes.classes import Classes, infer_classes
from judgebayes.votes.coding import Coding, encode, encode_counts, encode_wide

__all__ = [
    "MISSING",
    "Classes",
    "Coding",
    "Votes",
    "encode",
    "encode_counts",
    "encode_wide",
    "from_counts",
    "infer_classes",
]
