"""The one error that users meet: a sentence that says what, where, and what would be right."""

__all__ = ["JudgeBayesError"]


class JudgeBayesError(ValueError):
    """Bad input or an impossible request, in one clear sentence."""
