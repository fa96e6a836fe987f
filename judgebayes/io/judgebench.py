"""JudgeBench's outputs: a file per judge, a pair of responses per line, judged in both orders."""

import re
from collections.abc import Iterator

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import OTHER, at, records_in

VOTES = {"A>B": "A", "B>A": "B", "A=B": "tie", "B=A": "tie"}
IN_NAME = re.compile(r"(judge_name|judge_model)=([^,]+?)(?=,|\.jsonl$)")


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
        named = dict(IN_NAME.findall(file.name))
        for where, record in records_in(file):
            item = str(field_of(record, "pair_id", where))
            label = VOTES.get(str(record.get("label")))
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
                vote = VOTES.get(str(decision).replace(" ", "").replace(">>", ">").upper())
                why = f"decision {str(decision)[:20]!r}"
                if decision is None:
                    why = "no decision" if isinstance(judgment, dict) else "judgment failed"
                if order == "BA":
                    vote = OTHER.get(str(vote), vote)
                yield Row(item, judge, vote, why, order=order, label=label)
