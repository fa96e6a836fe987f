"""Benchmarks of judges: AlpacaEval, Chatbot Arena, JudgeBench, MT-bench and RewardBench."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import ROLES
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import answer_in, at, name_in, plain, records_in, records_of

OTHER = {"A": "B", "B": "A"}
"""The other side of a pair."""
LONGEST_INSTRUCTION = 120
"""The length of an item's name."""


def read_alpaca_eval(given: Files) -> Iterator[Row | str]:
    """Return the votes of AlpacaEval's annotators: A is output 1, B output 2.

    `preference` is 1 for output 1, 2 for output 2, and between them if it is weighted by probabilities:
    below 1.5 is a vote for A, above 1.5 for B, and `score` is preference - 1, the annotator's
    probability of B. 1.5 is a tie, as is 0 (in old files); null is a missing vote. Where AlpacaEval
    showed the outputs in random order, it has mapped the preference back itself.

    Raises
    ------
    JudgeBayesError
        If a file is not a list of annotations.
    """
    read, between = 0, list[float]()
    for file in given.files:
        for where, record in records_in(file):
            vote, why, score = _preferred(field_of(record, "preference", where))
            item = _pair_of_outputs(record, field_of(record, "instruction", where))
            judge = record.get("annotator")
            name = f"annotator {judge}" if isinstance(judge, int) else judge or file.parent.name
            yield Row(item, str(name), vote, why, score=score)
            read += 1
            between += [score] if score not in (None, 0.0, 0.5, 1.0) else []
    if between:
        yield (
            f"{len(between)} of {read} preferences are between two responses, such as "
            f"{1 + between[0]:.4g}: their vote is the nearer response, and the column score "
            "has the probability of B. To use the probabilities, add --vote score --set bins=5."
        )


def _pair_of_outputs(record: dict[str, Any], instruction: Any) -> tuple[str, str]:
    """Return a name for a pair of outputs, the same in every annotator's file: models, instruction.

    Labels are joined by the instruction, so it is in the name; of a long one its beginning and a digest.
    """
    models = [str(record[g]) for g in ("generator_1", "generator_2") if record.get(g) is not None]
    text = " ".join(str(instruction).split())
    if len(text) > LONGEST_INSTRUCTION:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        text = f"{text[: LONGEST_INSTRUCTION - 14]} #{digest}"
    return " vs ".join(models), text


def _preferred(preference: Any) -> tuple[str | None, str, float | None]:
    number = plain(preference) if type(preference) in (int, float) else None
    if number in (0, 1.5):
        return "tie", "", 0.5
    if isinstance(number, int | float) and 1 <= number <= 2:
        return ("A" if number < 1.5 else "B"), "", float(number) - 1
    if preference is None or preference != preference:
        return None, "preference is null", None
    return None, f"preference {str(preference)[:20]} is not from 1 to 2", None


NAMES_OF_BATTLES = ("battle", "battle_id", "question_id", "id", "conversation_id")
WINNERS = ("model_a", "model_b", "tie")


def read_arena(given: Files) -> Iterator[Row]:
    """Return the votes in battles of Chatbot Arena.

    An item is `battle` (or another name of an item), or `battle|model|model` if a battle (a question)
    has several pairs of models. A is `model_a`; where battles have their models in both orders, it is
    the first one in alphabetical order. Ties are one class, whether both were good or bad. Without
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
    battles: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = []
    pairs: dict[str, set[tuple[str, ...]]] = {}
    for place, (where, record) in enumerate(records_of(given)):
        own = name_in(record, *NAMES_OF_BATTLES, *ROLES["item"]) or str(place)
        models = tuple(str(field_of(record, name, where)) for name in ("model_a", "model_b"))
        pairs.setdefault(own, set()).add(models)
        battles.append((own, models, where, record))
    one_order = all(len(orders) == 1 for orders in pairs.values())
    several = any(len({*map(frozenset, orders)}) > 1 for orders in pairs.values())
    for own, models, where, record in battles:
        won = [n for n in WINNERS if answer_in(record.get(f"winner_{n}"))[0] == 1]
        winner = record.get("winner", won[0] if len(won) == 1 else None)
        vote = winning_side(winner, WINNERS, models, where)
        if not one_order and models[0] > models[1]:
            vote, models = OTHER.get(str(vote), vote), models[::-1]
        judge = name_in(record, *ROLES["judge"][:-1])
        user = judge is None or judge.startswith("arena_user")
        person = "human" if user else judge if PEOPLE.fullmatch(str(judge)) else None
        turn = [f"t{record['turn']}"] if not user and record.get("turn") is not None else []
        item = "|".join((own, *turn, *(sorted(models) if several else ())))
        question = "winner" if person else str(judge)
        row = Row(item, question, vote, "no winner", person=person)
        yield replace(row, model_a=models[0], model_b=models[1])


DECISIONS = {"A>B": "A", "B>A": "B", "A=B": "tie", "B=A": "tie"}
IN_FILE_NAME = re.compile(r"(judge_name|judge_model)=([^,]+?)(?=,|\.jsonl$)")


def read_judgebench(given: Files) -> Iterator[Row]:
    """Return the votes of JudgeBench's judges, mapped back to the pairs as labelled.

    The second judgment of a pair was made with the responses swapped and names them as shown, so it is
    swapped back here. `A=B` is a tie. A decision of null, or a failed judgment, is a missing vote.

    Raises
    ------
    JudgeBayesError
        If a line is not a judged pair.
    """
    for file in given.files:
        named = dict(IN_FILE_NAME.findall(file.name))
        for where, record in records_in(file):
            item = str(field_of(record, "pair_id", where))
            label = DECISIONS.get(str(record.get("label")))
            judgments = field_of(record, "judgments", where)
            if not isinstance(judgments, list) or not 1 <= len(judgments) <= 2:
                raise JudgeBayesError(
                    f"{where} needs a list of one or two judgments (original order, then swapped)."
                )
            if label not in OTHER:
                raise JudgeBayesError(
                    f"{where} has the label {record.get('label')!r}; it must be A>B or B>A."
                )
            name = named.get("judge_name") or record.get("judge_name")
            inside = (at(judgment, "judgment", "judge_model") for judgment in judgments)
            model = named.get("judge_model") or next(filter(None, inside), "None")
            judge = str(name or file.stem) if model == "None" else f"{name}/{model}"
            for judgment, order in zip(judgments, ("AB", "BA"), strict=False):
                decision = at(judgment, "decision")
                vote = DECISIONS.get(str(decision).replace(" ", "").replace(">>", ">").upper())
                why = f"decision {str(decision)[:20]!r}"
                if decision is None:
                    why = "no decision" if isinstance(judgment, dict) else "judgment failed"
                if order == "BA":
                    vote = OTHER.get(str(vote), vote)
                yield Row(item, judge, vote, why, order=order, label=label)


PEOPLE = re.compile(r"(?:author|expert|human|annotator)s?[_ ]?\d*", re.IGNORECASE)
TIE = re.compile(r"tie.*|both.*", re.IGNORECASE)
"""A tie, with (bothbad), (inconsistent) or without, in the forms of the two tools."""


def read_mt_bench(given: Files) -> list[Row]:
    """Return the votes in MT-bench judgments.

    An item is `question|turn|model|model`, with the models in alphabetical order: A is the first of
    them, whatever the order shown. `g1_winner` and `g2_winner`, one judge's votes in the two orders,
    name models, so they are not swapped. `tie (inconsistent)`, the merger of the two, and `tie
    (bothbad)` are ties; `error` is a missing vote. In files of single scores an item is
    `question|turn|model`, and -1 is a missing vote. Where both people and models judged, the votes of
    people are labels.

    Raises
    ------
    JudgeBayesError
        If a line is not a judgment, or the files mix pairs and single scores.
    """
    pairs, scores = list[Row](), list[Row]()
    for where, record in records_of(given):
        question, judge = (field_of(record, name, where) for name in ("question_id", "judge"))
        judge = "/".join(map(str, judge)) if isinstance(judge, list) else str(judge)
        prefix = f"{question}|t{record.get('turn', 1)}"
        if "score" in record and "model" in record:
            value = record["score"]
            score = value if isinstance(value, int | float) and value >= 0 else None
            scores.append(Row(f"{prefix}|{record['model']}", judge, score, "score -1 (unreadable)"))
        else:
            pairs += _pairs(record, prefix, judge, where)
    if pairs and scores:
        raise JudgeBayesError(
            f"{str(given.path)!r} mixes verdicts on pairs and single scores; use a file of one kind."
        )
    return scores or pairs


def _pairs(record: dict[str, Any], prefix: str, judge: str, where: str) -> Iterator[Row]:
    in_orders = "g1_winner" in record
    names = ("model_1", "model_2") if in_orders or "model_1" in record else ("model_a", "model_b")
    models = [str(field_of(record, name, where)) for name in names]
    item, swapped = "|".join((prefix, *sorted(models))), models[0] > models[1]
    orders = {"g1_winner": "AB", "g2_winner": "BA"} if in_orders else {"winner": None}
    for key, order in orders.items():
        if key == "g2_winner" and key not in record:
            continue
        winner = field_of(record, key, where)
        vote = winning_side(winner, names, models, where)
        if swapped:
            vote, order = OTHER.get(str(vote), vote), order and order[::-1]
        person = judge if PEOPLE.fullmatch(judge) else None
        why = f"winner is {winner or 'null'}"
        yield Row(item, "winner" if person else judge, vote, why, order=order, person=person)


def winning_side(
    winner: Any, names: Sequence[str], models: Sequence[str], where: str
) -> str | None:
    """Return A, B or tie for a winner by the name of its field or its own, None without a winner.

    Raises
    ------
    JudgeBayesError
        If it is another word.
    """
    sides = dict(zip((*models, *names), "ABAB", strict=False))
    vote = "tie" if TIE.fullmatch(str(winner)) else sides.get(str(winner))
    if vote is None and winner not in (None, "error"):
        raise JudgeBayesError(
            f"{where} has the winner {str(winner)[:40]!r}; it must be {names[0]}, {names[1]}, tie or "
            "error."
        )
    return vote


def read_rewardbench(given: Files) -> Iterator[Row | str]:
    """Return the votes of reward models on pairs.

    The source records only whether the chosen response won. With it always first, the label would be the
    same on every item, and any calibrator would look perfect. A hash of the item's name therefore puts
    the chosen response first (A) or second (B), in votes and labels alike. A model that preferred
    neither response votes for a tie. A file without the name of its model is named by its path.

    Raises
    ------
    JudgeBayesError
        If a file does not have this form, or contains scores of more than two responses per item.
    """
    for file in given.files:
        inside = file.relative_to(given.path) if given.path.is_dir() else Path(file.name)
        path = "/".join(inside.with_suffix("").parts[-2:])
        for index, (where, record) in enumerate(_records_of_rewardbench(file)):
            subset = record.get("subset", record.get("subsets"))
            parts = [str(part) for part in (subset, record.get("id", index)) if part is not None]
            item = "/".join(parts)
            chosen = position_of_chosen(item)
            votes: dict[Any, str] = {1: chosen, 0: OTHER[chosen], 0.5: "tie"}
            vote = votes.get(_winner(record, where))
            yield Row(item, name_in(record, "model") or path, vote, "no result", label=chosen)
    yield (
        "A hash of the item's name puts the chosen response first (A) or second (B): if it were always "
        "first, every label would be the same."
    )


def position_of_chosen(item: str) -> str:
    """Return the position of an item's chosen response, A or B, from a hash of the item's name."""
    return "AB"[hashlib.sha256(item.encode()).digest()[0] & 1]


def _records_of_rewardbench(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file's records; the file contains either objects, or lists by name."""
    for where, record in records_in(file):
        if not isinstance(record.get("id", record.get("results")), list):
            yield where, record
            continue
        columns = {name: values for name, values in record.items() if isinstance(values, list)}
        lengths = set(map(len, columns.values()))
        if len(lengths) != 1:
            raise JudgeBayesError(f"{where} has columns of different lengths, {sorted(lengths)}.")
        for row in zip(*columns.values(), strict=True):
            yield where, record | dict(zip(columns, row, strict=True))


def _winner(record: dict[str, Any], where: str) -> float | None:
    """Return 1 where the chosen response won, 0 where it lost, 0.5 where neither did."""
    if isinstance(record.get("scores"), list) and "scores_chosen" not in record:
        raise JudgeBayesError(
            f"{where} has scores of {len(record['scores'])} responses (RewardBench 2); only pairs "
            "(chosen and rejected) can be read."
        )
    if "scores_chosen" not in record:
        field_of(record, "results", where)
    names = ("results", "scores_chosen", "scores_rejected")
    won, chosen, rejected = (_number(record.get(name)) for name in names)
    if won is None and chosen is not None and rejected is not None:
        won = 0.5 if chosen == rejected else float(chosen > rejected)
    return won


def _number(value: Any) -> float | None:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    number = plain(value)
    return float(number) if isinstance(number, int | float) else None
