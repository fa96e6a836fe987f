r"""The verdict in a judge's raw answer (P2 appendix H.1).

Reasoning is stripped. Then five levels of matching are tried, from strict to loose, and the first level
that matches decides:

0. `json`: the answer is, or ends with, a JSON object with a verdict (not in the paper); a sentence
   after it may not name a side, a label or a number, or deny;
1. `brackets`: ``[[A]]``, ``<answer>A</answer>``, ``\boxed{A}``;
2. `bold`: ``**A**``;
3. `phrase`: a last sentence that ends with "Output A", "Assistant (b)" or "Response 1", calls one
   response better, or calls the two a tie; an earlier sentence that says only this; "Score: 7";
   "Verdict: valid";
4. `bare`: only "A" or "B.", "A > B" or "A = B" at the very end; "GRADE: C" (correct) or "GRADE: I".

What names the other side is not read: "Loser: A", and the bounds of a scale, "Max score: 10". "Yes" and
"no" count after a name of the verdict only: "Valid: no", and "Errors: no" the other way round.

Nothing is guessed. If a level names different verdicts, the verdict at the end of the last line counts,
provided that this line names no other; otherwise the answer contradicts itself and is not a vote. A last
sentence that compares, denies or hedges is not a vote either.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from judgebayes.io.json_lines import Found, find_json
from judgebayes.votes.classes import canonical

Kind = Literal["pair", "score", "valid"]

LEVELS = ("json", "brackets", "bold", "phrase", "bare")
"""The levels, from the strictest to the loosest."""

TAIL_LENGTH = 200
"""A phrase counts only in the last so many characters. (The number in P2 is not legible in our copy.)"""
MAX_LENGTH = 100_000
"""Only the end of a longer answer is read."""

_REASONING = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
_TAG = re.compile(rf"<(/?)(?:{_REASONING})\b[^<>]*>", re.IGNORECASE)

_KEYS: dict[str, tuple[str, ...]] = {
    "pair": (
        *("verdict", "winner", "preference", "preferred", "decision", "choice", "better"),
        *("final_verdict", "judgment", "judgement", "answer", "result"),
    ),
    "score": ("score", "rating", "grade", "overall_score", "final_score", "overall", "points"),
    "valid": (
        *("verdict", "valid", "is_valid", "correct", "is_correct", "pass", "passed", "label"),
        *("classification", "decision", "judgment", "judgement", "answer", "result"),
    ),
}

_GOOD = ("valid", "correct", "right", "pass", "passed", "yes", "true")
_BAD = (
    *("invalid", "incorrect", "wrong", "fail", "failed", "no", "false"),
    *("partially valid", "partially correct"),
)
_VALID = dict.fromkeys(_GOOD, "valid") | dict.fromkeys(_BAD, "invalid")
_OPPOSITE = {"valid": "invalid", "invalid": "valid"}
_ANSWERS = ("yes", "no", "true", "false")
"""Words that answer a question, and say nothing without it."""
_FAULT = r"(?:(?:is|has|contains?|any) )?(?:invalid|incorrect|wrong|errors?|mistakes?)"
"""What a fault is called: "Errors: yes" is invalid."""
_QUESTION = re.compile(
    r"(?:(?:my|the|is|it|this|response|output|answer|solution|final|overall) )*(?:verdict|answer"
    r"|judge?ment|decision|classification|label|conclusion|result|valid|validity|correct|correctness"
    r"|pass|passed|passes|acceptable|accepted)?",
    re.IGNORECASE,
)
"""What a verdict on one output is called: "Valid: yes"."""

_SIDE = r"(?:output|solution|assistant|response|answer|model|option|candidate)"
_DOUBT = re.compile(
    r"\b(?:not|never|neither|nor|no|cannot|worse|worst|inferior|weaker|weakest|loses|lost|fails?|failed|"
    r"lacks?|unlike|than|over|however|but|although|though|while|whereas|if|unless|could|might|may|"
    r"unclear|unsure|except|instead|compared)\b|n['’]t\b",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"\s*{_SIDE}\b", re.IGNORECASE)
_DIGITS = (
    r"(?<![\d.,])([+\-\u2212]?(?:\d+(?:[.,]\d+)*|[.,]\d+))"
    r"(?!\w|[.,]\d|\s*(?:[\-\u2212\u2013\u2014]|to )\s*\d)"
)
"""A number and not part of one, or of a range (8-9)."""
_NUMBER = rf"{_DIGITS}(?:\s*(?:/|out of)\s*(\d+(?:\.\d+)?))?"
_GAP = r"[^\w\n\-\u2212.,+<>\u2264\u2265]"
_SCORED = re.compile(
    rf"(?:score|rating|grade)(?: ?\([^()\n]{{1,20}}\))?{_GAP}{{0,5}}"
    rf"(?:is\s+|of\s+)?{_GAP}{{0,4}}{_NUMBER}",
    re.IGNORECASE,
)
_OUT_OF = re.compile(rf"{_DIGITS}\s*(?:/|out of)\s*(\d+(?:\.\d+)?)")
_BOUND = re.compile(
    r"\b(?:max(?:imum|imal)?|min(?:imum|imal)?|highest|lowest|best|perfect|full|passing|threshold)\b\.?"
    r"(?: possible)?(?: (?:score|rating|grade|points?|value))?[^\w\n]{0,4}(?:is |of )?"
    r"[+\-\u2212]?\d+(?:[.,]\d+)*",
    re.IGNORECASE,
)
"""A bound of the scale, and not the score."""
_SIDE_OF = rf"(?i:{_SIDE})\s+[\"'*(]*(?:([AB12])\b(?!['’]|[.,]\d)|(?<=\()([ab])(?=\)))[\"'*)]*"
_OTHER = re.compile(
    r"(?:^|[,;.|\n(]|\band\b)[\W_]{0,6}(?:the )?"
    r"(?:loser|losing|rejected|reject|worse|worst|weaker|inferior|not chosen|runner[\s\-]up|second"
    r"(?: place)?|2nd(?: place)?|last|other|poor|poorer|bad|declined|discarded|eliminated"
    rf"|dispreferred|least preferred)(?: {_SIDE})?\W{{0,4}}[:=]\W{{0,4}}(?:{_SIDE}\s+)?\(?"
    r"(?:[AB12]|tie)\b\)?",
    re.IGNORECASE,
)
"""The side that lost, by a name of its own."""
_ORDERED = re.compile(
    r"(?:^|[:\s(\[\"'*])([AB])\s*(>{1,3}|<{1,3}|={1,2}|[~\u2248])\s*([AB])[\"')*\].!]{0,4}$"
)
_KEY = re.compile(r"(?:^|[,;.|])([^:=,;.|\n]{1,80})[:=][\s\"'(*\[]{0,5}(?=[\w(])")
_CHOICE = re.compile(
    r"\b(?:verdict|winner|wins|choice|choose|chosen|choosing|prefer\w*|better|best|stronger|superior|answer"
    r"|final|finally|decision|judg\w*|result|conclusion|pick\w*|select\w*|favou?r\w*|vote|overall|so"
    r"|therefore|thus|hence|output|response|accept\w*|first|1st)\b",
    re.IGNORECASE,
)
_CONTRARY = re.compile(
    r"\b(?:less|least|lower|lowest|wrong|incorrect|invalid|inferior|bad|poor\w*|weak\w*|worse|worst|los\w+"
    r"|reject\w*|declin\w+|discard\w*|other|second|2nd|last|not|never|dis\w+|un\w+)\b",
    re.IGNORECASE,
)
"""What a choice is called before a colon, and the words that make the opposite of it."""
_WINS = re.compile(rf"^\W*(?:(?i:the )?(?i:{_SIDE})\s+)?([AB12]) (?:wins|won|is the winner)\W*$")
_TAGGED = re.compile(
    r"<(?:final_)?(answer|verdict|winner|choice|judge?ment|score|rating)>([^<>]{1,60})</(?:final_)?\1>"
    r"|\\boxed\{(?:\\text\{)?([^{}]{1,60})\}",
    re.IGNORECASE,
)
_GRADE = re.compile(r"GRADE: ?([CIP])\W{0,3}$")
"""The letters of graders by a model: correct, incorrect, partially correct."""
_BETTER = r"(?:better|best|superior|preferable|preferred|stronger|winner)"
_ONE = r"(?: (?:one|output|response|answer|solution|choice|option|overall))?"
_DECLARES = re.compile(rf"{_SIDE_OF} (?i:is (?:\w+ly |the |much |far )*{_BETTER}{_ONE})\W*$")
_CHOSEN = re.compile(
    rf"(?i:[:=]|\b(?:is|choose|chose|prefer|pick|select|verdict|winner|better|best))[\s*_\"'(]*{_SIDE_OF}\W*$"
)
_WHOLE_SENTENCE = re.compile(rf"\W*{_SIDE_OF}\W*$")
_LEAD = re.compile(
    r"\W*(?:(?:therefore|thus|so|hence|overall|finally|ultimately|in (?:conclusion|summary))\W+)?"
    rf"{_SIDE}\b",
    re.IGNORECASE,
)
"""Start of a sentence with the judge's own verdict (not a report of another's verdict)."""
_REASON = re.compile(r",?\s+(?:because|since|as|for|due)\b.*$", re.IGNORECASE)
_COMPARED = re.compile(r"\b(better|superior|preferable|stronger) (?:than|to)\b.*$")
""""better than ..." is reduced to "better"."""
_TIED = re.compile(
    r"\b(?:is|it['’]s|call(?:ing)?) (?:it )?a (?:tie|draw)\b"
    r"|\bequally (?:good|bad)\b"
    r"|^\W*(?:(?:overall|finally|so|thus|therefore|hence|in the end)\W+)?(?:an? )?(?:tie|draw)\W*$",
    re.IGNORECASE,
)
_TIE = re.compile("tie|draw|same|equal|a[=~]b|b[=~]a")
_PAIR = re.compile(
    rf"(?:{_SIDE} \(?)?([ab])|{_SIDE} ([12])|([ab])(?: (?:is )?better| wins|>>?(?!\3)[ab])"
    r"|([ab])<<?(?!\4)([ab])"
)
"""A word or two that name one side as the better one; the last group is this side."""
_NAMED = re.compile(
    r"\b(?:verdict|answer|judge?ment|decision|classification|label|conclusion)"
    r"(?:\s+is|\W?\s*[:=])\W{0,4}(partially \w+|\w+)\W{0,4}$",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"(?:^|[:=]\s*)[\W_]{0,3}(partially \w+|\w+)[\W_]{0,3}$")
_ENDING = re.compile(
    r"(?:[:=]|\b(?:is|choose|prefer|pick|verdict|answer|winner|choice))[\s\"'(*\[]{0,5}"
    r"(?<![AB][:=])(?<![AB] [:=])(?<![AB] [:=] )([AB]|tie|Tie|TIE)[\"')*\].!]{0,4}$"
)


_SPEAKS: dict[str, re.Pattern[str]] = {
    "pair": re.compile(
        rf"\b(?:[ABab]|ties?|tied|draw|both|{_SIDE})\b|\[\[|\*\*|\{{", re.IGNORECASE
    ),
    "score": re.compile(r"\d|score|rating|grade|\{", re.IGNORECASE),
    "valid": re.compile(rf"\b(?:{'|'.join((*_GOOD, *_BAD))}|{_SIDE})\b|\{{", re.IGNORECASE),
}
"""Words after the JSON that may be another verdict."""


@dataclass(frozen=True)
class Verdict:
    """A verdict or None, and the level that matched."""

    value: str | float | None
    """`A`, `B` or `tie` for a pair; a number for a score; `valid` or `invalid`."""
    level: str | None
    """One of `LEVELS`; None if nothing matched."""

    @property
    def why(self) -> str:
        """The reason for a missing verdict."""
        return "no verdict found" if self.level is None else "verdicts contradict"


NO_VERDICT = Verdict(None, None)


def strip_reasoning(text: str) -> str:
    """Return an answer without its reasoning blocks.

    A block without a closing tag runs to the end; one without an opening tag begins at the start.
    """
    outside: list[str] = []
    depth = start = 0
    for tag in _TAG.finditer(text):
        closing = tag.group(1) == "/"
        if depth == 0:
            if closing:
                outside.clear()
            else:
                outside.append(text[start : tag.start()])
        depth = max(depth - 1, 0) if closing else depth + 1
        start = tag.end()
    return " ".join(outside if depth else [*outside, text[start:]])


def parse_verdict(text: object, kind: Kind = "pair") -> Verdict:
    """Return the verdict in a judge's raw answer.

    Parameters
    ----------
    text
        The answer. Anything but text has no verdict.
    kind
        `pair`: which of two responses, A and B, is better; `score`: a number; `valid`: whether one
        output is valid.

    Returns
    -------
    Verdict
        No text raises an exception.

    Examples
    --------
    >>> parse_verdict("<think>[[A]]?</think> Both are fine. [[B]]")
    Verdict(value='B', level='brackets')
    >>> parse_verdict("I like both answers.")
    Verdict(value=None, level=None)
    """
    if not isinstance(text, str):
        return NO_VERDICT
    answer = strip_reasoning(text)[-MAX_LENGTH:].strip()
    if in_json := _from_json(answer, kind, find_json(answer)):
        return Verdict(in_json[0], LEVELS[0])
    answer = _without_others(answer, kind)
    matchers = (_in_brackets, _in_bold, _in_phrase, _in_last_line)
    for level, match_level in zip(LEVELS[1:], matchers, strict=True):
        if matches := match_level(answer, kind):
            return Verdict(_resolve(matches, answer, match_level, kind), level)
    return NO_VERDICT


def _resolve(values: list[Any], text: str, match_level: Any, kind: Kind) -> Any:
    """Return the verdict of a level; if several differ, the one at the end of the last line, or None."""
    if len(set(values)) == 1:
        return values[0]
    last = text.splitlines()[-1]
    marked = match_level in (_in_brackets, _in_bold)
    if marked and not re.search(r"(?:\]\]|\*\*)[\s.!\"'`)]*$", last):
        return None
    last_values = set(match_level(last, kind))
    return last_values.pop() if len(last_values) == 1 else None


def _from_json(text: str, kind: Kind, objects: list[Found]) -> list[Any]:
    """Return the verdict of the last JSON object, if nothing after it can be about the verdict."""
    if not objects or not isinstance(objects[-1].value, dict):
        return []
    last = objects[-1]
    after = _without_others(text[last.end :], kind)
    if _SPEAKS[kind].search(after) or _DOUBT.search(after):
        return []
    fields = {str(k).strip().casefold().replace(" ", "_"): v for k, v in last.value.items()}
    named = [fields[key] for key in _KEYS[kind] if key in fields]
    values = [_value(value, kind) for value in named]
    if kind == "valid" and not named:
        faults = (v for k, v in fields.items() if re.fullmatch(_FAULT, k.replace("_", " ")))
        values = [_OPPOSITE.get(str(_value(fault, kind))) for fault in faults]
    return [value for value in values if value is not None][:1]


def _without_others(text: str, kind: Kind) -> str:
    """Return the text without the side that lost, or the bounds of the scale."""
    return text if kind == "valid" else (_OTHER if kind == "pair" else _BOUND).sub("", text).strip()


def _in_brackets(text: str, kind: Kind) -> list[Any]:
    words = re.findall(r"\[\[([^\[\]\n]{1,60})\]\]", text)
    if kind == "pair":  # MT-bench's prompt names a tie C
        words = ["tie" if word.strip() in ("C", "c") else word for word in words]
    words += [tagged or boxed for _, tagged, boxed in _TAGGED.findall(text)]
    return _readable(words, kind)


def _in_bold(text: str, kind: Kind) -> list[Any]:
    words = re.findall(r"\*\*([^*\n]{1,60})\*\*(?!\s?:)", text)
    # "**Assistant A**" is more often a heading than a verdict, and "**Valid:** no" is the opposite.
    return _readable(
        [w for w in words if not _HEADING.match(w) and not w.rstrip().endswith(":")], kind
    )


def _in_phrase(text: str, kind: Kind) -> list[Any]:
    sentences = _sentences(text)
    if not sentences:
        return []
    last = sentences[-1][-TAIL_LENGTH:]
    if kind == "valid":
        return _answered(last, _NAMED.search(last))
    if kind == "score":
        numbers = [] if _DOUBT.search(last) else _SCORED.findall(last) + _OUT_OF.findall(last)
        return _readable([number for number, _ in numbers], kind)
    sides = [_declared(sentence) for sentence in sentences[:-1] if _LEAD.match(sentence)]
    sides += [_declared(_REASON.sub("", last)) or _chosen(last) or _won_or_tied(last)]
    return [side for side in sides if side is not None]


def _declared(sentence: str) -> str | None:
    """Return the response that a sentence calls better."""
    sentence = _COMPARED.sub(r"\1", sentence)
    return _side(_DECLARES.search(sentence), sentence)


def _chosen(sentence: str) -> str | None:
    """Return the response that a sentence ends with as its choice, or that is all of the sentence."""
    if _other_key(sentence):
        return None
    return _side(_CHOSEN.search(sentence) or _WHOLE_SENTENCE.match(sentence), sentence)


def _other_key(line: str) -> bool:
    """Tell whether the last name before a colon may name anything but the better side: "Poorer: A"."""
    keys = _KEY.findall(line)
    return bool(keys) and (not _CHOICE.search(keys[-1]) or bool(_CONTRARY.search(keys[-1])))


def _answered(line: str, word: re.Match[str] | None) -> list[Any]:
    """Return the verdict of a word on one output; a "yes" counts for what it is an answer to."""
    if word is None or _DOUBT.search(line[: word.start(1)]):
        return []
    said = _readable([word.group(1)], "valid")
    before = re.split(r"[:=?]", line[: word.start(1)])[:-1]
    about = re.sub(r"[\W_]+", " ", before[-1]).strip() if before else ""
    if re.fullmatch(_FAULT, about, re.IGNORECASE):
        return [_OPPOSITE[each] for each in said] if word.group(1).casefold() in _ANSWERS else []
    if word.group(1).casefold() in _ANSWERS and not _QUESTION.fullmatch(about):
        return []
    return said


def _won_or_tied(sentence: str) -> str | None:
    """Return the side of a sentence that says only "B wins", or a tie."""
    tied = _TIED.search(sentence) and not _DOUBT.search(sentence)
    return _side(_WINS.match(sentence), sentence) or ("tie" if tied else None)


def _side(match: re.Match[str] | None, sentence: str) -> str | None:
    if match is None or _DOUBT.search(sentence):
        return None
    named = next(group for group in match.groups() if group).upper()
    rest = sentence[: match.start()]
    other = {"A": "B", "B": "A", "1": "2", "2": "1"}[named]
    # Two responses in one sentence are a comparison, whose direction is not parsed.
    compared = re.search(rf"\b{other}\b|\({other.lower()}\)", rest)
    return None if compared else {"1": "A", "2": "B"}.get(named, named)


def _in_last_line(text: str, kind: Kind) -> list[Any]:
    if not text:
        return []
    last = text.splitlines()[-1].strip()
    if kind == "score":
        number = re.fullmatch(rf"[^\w\-\u2212.,+]{{0,3}}{_NUMBER}\W{{0,3}}", last)
        return _readable([number.group(1)], kind) if number else []
    if kind == "valid":
        if grade := _GRADE.search(last):
            return ["valid" if grade.group(1) == "C" else "invalid"]
        return _answered(last, _LAST_WORD.search(last))
    if order := _ORDERED.search(last):
        left, sign, right = order.groups()
        signs = {">": left, "<": right}
        doubtful = left == right or _DOUBT.search(last)
        return [] if doubtful else [signs.get(sign[0], "tie")]
    if _other_key(last):
        return []
    word = re.fullmatch(r"[\W_]{0,3}([ABab]|tie|Tie|TIE)[\W_]{0,3}", last) or _ENDING.search(last)
    return [] if word is None or _DOUBT.search(last) else _readable([word.group(1)], kind)


def _sentences(text: str) -> list[str]:
    parts = re.split(r"(?<=[.!?])\s+|\n+", text)
    return [part for part in parts if re.search(r"\w", part)]


def _readable(words: list[str], kind: Kind) -> list[Any]:
    values = [_value(word, kind) for word in words]
    return [value for value in values if value is not None]


def _value(word: object, kind: Kind) -> str | float | None:
    """Return the verdict of a word, number or truth value, or None."""
    if kind == "score":
        return _number(word)
    if kind == "valid":
        return validity(word)
    said = _casefolded(word) if isinstance(word, str) else ""
    side = _PAIR.fullmatch(said)
    if side is None:
        return "tie" if _TIE.fullmatch(said) else None
    return "A" if side[side.lastindex or 0] in ("a", "1") else "B"


def validity(word: object) -> str | None:
    """Return valid or invalid for a word or truth value of a judge, None for anything else."""
    if isinstance(word, bool):
        word = str(word)
    return _VALID.get(_casefolded(word.strip("*`"))) if isinstance(word, str) else None


def _casefolded(word: str) -> str:
    return re.sub(r"[\s_]+|(?<=\w)-(?=\w)", " ", word).strip(" .:!\"'()").casefold()


def _number(word: object) -> float | None:
    if isinstance(word, str):
        match = re.fullmatch(rf"(?i:(?:score|rating)[\s:=]{{0,3}})?{_NUMBER}", word.strip())
        word = _plain_number(match.group(1)) if match else None
    number = canonical(word) if type(word) in (int, float) else None
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None


def _plain_number(digits: str) -> float | None:
    """Return a number with a point or a decimal comma; None for 10,000, which may be either."""
    if len(re.findall("[.,]", digits)) > 1 or re.search(r",\d{3}$", digits):
        return None
    return float(digits.replace(",", ".").replace("\u2212", "-"))
