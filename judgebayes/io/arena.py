"""Battles of Chatbot Arena: two models, and which of them won."""

import re
from collections.abc import Iterator

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES
from judgebayes.io.gathering import Row
from judgebayes.io.mt_bench import PEOPLE
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import answer_in, name_in, records_of

NAMES = ("battle", "battle_id", "question_id", "id", "conversation_id")
WINNERS = ("model_a", "model_b", "tie")
TIE = re.compile(r"tie.*|both.*", re.IGNORECASE)
"""A tie, with (bothbad) or without, as one of the two forms writes it."""


def read_arena(given: Files) -> Iterator[Row]:
    """Return the votes in battles of Chatbot Arena.

    An item is `battle`, or `battle|model|model` if a battle (a question) has several pairs of models. A
    is `model_a`; where battles have their models in both orders, it is the first one in alphabetical
    order. Ties are one class, whether both were good or bad. Without
    a judge, and where the judges are users of the arena (`arena_user_...`), the votes are by one judge,
    `human`; other judges count by their names, and people among them as in MT-bench. `winner` may also
    be three columns (`winner_model_a`).

    The shape is that of lm-sys/FastChat, `fastchat/serve/monitor/clean_battle_data.py`, and of the data
    sets made from it.

    Raises
    ------
    JudgeBayesError
        If a record has no two models, or another winner than one of them or a tie.
    """
    records = list(records_of(given))
    pairs: dict[str, set[tuple[str, ...]]] = {}
    for place, (where, record) in enumerate(records):
        both = tuple(str(field_of(record, name, where)) for name in WINNERS[:2])
        pairs.setdefault(name_in(record, *NAMES) or str(place), set()).add(both)
    one_order = all(len(orders) == 1 for orders in pairs.values())
    several = any(len({*map(frozenset, orders)}) > 1 for orders in pairs.values())
    for place, (where, record) in enumerate(records):
        models = [str(field_of(record, name, where)) for name in WINNERS[:2]]
        own = name_in(record, *NAMES) or str(place)
        winner = record.get("winner")
        if "winner" not in record:
            won = [n for n in WINNERS if answer_in(record.get(f"winner_{n}"))[0] == 1]
            winner = won[0] if len(won) == 1 else None
        if isinstance(winner, str) and winner not in models:
            winner = (
                "tie"
                if TIE.fullmatch(winner)
                else dict(zip(WINNERS, models, strict=False)).get(winner, winner)
            )
        if winner is not None and winner not in ("tie", *models):
            raise JudgeBayesError(
                f"{where} has the winner {str(winner)[:40]!r}; it must be model_a, model_b or tie."
            )
        first = models[0] if one_order else min(models)
        vote = winner if winner in (None, "tie") else "A" if winner == first else "B"
        judge = name_in(record, *ROLES["judge"][:-1])
        user = judge is None or judge.startswith("arena_user")
        person = "human" if user else judge if PEOPLE.fullmatch(str(judge)) else None
        turn = [f"t{record['turn']}"] if not user and record.get("turn") is not None else []
        item = "|".join((own, *turn, *(sorted(models) if several else ())))
        yield Row(item, "winner" if person else str(judge), vote, "no winner", person=person)
