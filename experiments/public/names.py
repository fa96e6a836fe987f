"""Pseudo-random choices that depend only on a name, so that every conversion makes the same choices."""

import hashlib


def coin(name: str) -> bool:
    """Return a fair coin flip: the last bit of the first byte of the name's SHA-256."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def die(name: str, sides: int) -> int:
    """Return a uniform number below `sides`: the name's SHA-256 modulo `sides`."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest(), "big") % sides


def rank(name: str) -> str:
    """Return a sort key for drawing a random subset: the name's SHA-256."""
    return hashlib.sha256(name.encode()).hexdigest()
