"""What the calls of a file of votes have cost, and whether the budget allows another one."""

from collections.abc import Sequence
from dataclasses import dataclass

from judgebayes.collect.bookings import Bookings


@dataclass(frozen=True)
class Budget:
    """The budget of one file of votes, over all runs; None for no limit.

    A call is an answer, or a request that may have been answered and charged for: it was sent and not
    refused. Tokens are those that the servers count, of prompts and answers; a call without a count is
    assumed to have cost as many as the most costly answer.
    """

    calls: int | None = None
    tokens: int | None = None


@dataclass
class Spending:
    """The spending on a file so far, and bounds for pending answers."""

    budget: Budget
    bookings: Bookings
    tokens: int
    """Tokens of all answers with a count."""
    counted: int
    """The number of these answers."""
    largest: int
    """The largest number of tokens of an answer so far, 0 if unknown."""
    longest: int
    """The tokens that a lost answer is assumed to have cost while `largest` is unknown."""
    under_way: int = 0
    """The number of booked calls that are neither answered nor failed."""

    @classmethod
    def of(
        cls, budget: Budget, bookings: Bookings, tokens: Sequence[int | None], longest: object
    ) -> "Spending":
        """Return the spending on a file with these tokens by answer."""
        counted = [n for n in tokens if n is not None]
        limit = longest if isinstance(longest, int) else 0
        return cls(budget, bookings, sum(counted), len(counted), max(counted, default=0), limit)

    def short_of(self) -> str | None:
        """Return the budget that another call might exceed, or None."""
        calls = self.bookings.calls
        if self.budget.calls is not None and calls >= self.budget.calls:
            return "calls"
        if self.budget.tokens is None:
            return None
        if self.largest == 0 and self.under_way > 0:
            return "tokens"  # nothing is known yet: wait for the first answer
        uncounted = calls - self.counted - self.under_way
        after = self.tokens + uncounted * (self.largest or self.longest)
        after += (self.under_way + 1) * self.largest
        return "tokens" if after > self.budget.tokens else None

    def answered(self, tokens: int | None) -> None:
        """Count an answer."""
        self.under_way -= 1
        if tokens is not None:
            self.tokens += tokens
            self.counted += 1
            self.largest = max(self.largest, tokens)


@dataclass(frozen=True)
class Attempts:
    """The attempts of one question, booked before they are sent."""

    spending: Spending
    judge: str
    item: str

    def book(self) -> bool:
        """Book an attempt; False if the budget does not allow it.

        Raises
        ------
        JudgeBayesError
            If the booking cannot be written.
        """
        if self.spending.short_of() is not None:
            return False
        self.spending.bookings.book(self.judge, self.item)
        self.spending.under_way += 1
        return True

    def failed(self, *, charged: bool) -> None:
        """Note a failed attempt; one that was not charged for is taken back."""
        self.spending.under_way -= 1
        if not charged:
            self.spending.bookings.take_back(self.judge, self.item)
