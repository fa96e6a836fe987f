"""Battles of Chatbot Arena: two models, and which of them won."""

from collections.abc import Iterator
from typing import Any

from judgebayes.io.columns import ROLES
from judgebayes.io.gathering import Row
from judgebayes.io.mt_bench import PEOPLE, winning_side
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import OTHER, answer_in, name_in, records_of

NAMES = ("battle", "battle_id", "question_id", "id", "conversation_id")
WINNERS = ("model_a", "model_b", "tie")


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
    battles: list[tuple[str, tuple[str, str], str, dict[str, Any]]] = []
    pairs: dict[str, set[tuple[str, str]]] = {}
    for place, (where, record) in enumerate(records_of(given)):
        own = name_in(record, *NAMES) or str(place)
        models = (
            str(field_of(record, "model_a", where)),
            str(field_of(record, "model_b", where)),
        )
        pairs.setdefault(own, set()).add(models)
        battles.append((own, models, where, record))
    one_order = all(len(orders) == 1 for orders in pairs.values())
    several = any(len({*map(frozenset, orders)}) > 1 for orders in pairs.values())
    for own, models, where, record in battles:
        won = [n for n in WINNERS if answer_in(record.get(f"winner_{n}"))[0] == 1]
        winner = record.get("winner", won[0] if len(won) == 1 else None)
        vote = winning_side(winner, WINNERS, models, where)
        if not one_order and models[0] > models[1]:
            vote = OTHER.get(str(vote), vote)
        judge = name_in(record, *ROLES["judge"][:-1])
        user = judge is None or judge.startswith("arena_user")
        person = "human" if user else judge if PEOPLE.fullmatch(str(judge)) else None
        turn = [f"t{record['turn']}"] if not user and record.get("turn") is not None else []
        item = "|".join((own, *turn, *(sorted(models) if several else ())))
        yield Row(item, "winner" if person else str(judge), vote, "no winner", person=person)
