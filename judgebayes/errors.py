"""The error class for users: one sentence on what is wrong, where, and what to do."""

from judgebayes.sentence import sentence


class JudgeBayesError(ValueError):
    """Bad input or an impossible request, in one clear sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))
