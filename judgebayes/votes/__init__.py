"""Conversion of tables of votes to integer arrays, and back.

This package may not import `measures` or any package after it.
"""

from judgebayes.votes.array import MISSING, UNDECIDED, SparseVotes, Votes, from_counts, from_dense
from judgebayes.votes.classes import Classes, infer_classes
from judgebayes.votes.coding import Coding
from judgebayes.votes.encoding import encode, encode_sparse, encode_wide

__all__ = [
    "MISSING",
    "UNDECIDED",
    "Classes",
    "Coding",
    "SparseVotes",
    "Votes",
    "encode",
    "encode_sparse",
    "encode_wide",
    "from_counts",
    "from_dense",
    "infer_classes",
]
