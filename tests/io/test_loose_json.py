import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebayes.io.json_lines import find_json

SIGNS = "aB1 .,:;'\"\\/{}[]\n\té\u2019\U0001f600"
"""Signs of JSON among others: Hypothesis needs seconds to list all characters."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(SIGNS, max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(SIGNS, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(SIGNS, max_size=3), JSON, max_size=3)
PLAIN = st.text("abc .,:'\n", max_size=20)


@given(OBJECTS, PLAIN, PLAIN)
def test_an_object_between_sentences_is_found_in_its_place(
    value: dict, before: str, after: str
) -> None:
    text = f"{before}{json.dumps(value)}{after}"
    (value_of,) = find_json(text)
    assert value_of.value == value
    if text.strip() != json.dumps(value):
        assert text[value_of.start : value_of.end] == json.dumps(value)


@given(st.lists(OBJECTS, min_size=1, max_size=3), PLAIN)
def test_commas_before_brackets_are_ignored_but_not_in_strings(values: list, before: str) -> None:
    inside = [{"text": 'a ",]" b ,}'}, *values]
    text = before + json.dumps(inside)[:-1] + " , ]"
    (value_of,) = find_json(text)
    assert value_of.value == inside


@pytest.mark.parametrize("text", ["", "no JSON", "[[A]]", "{", '{"a": }', "{'a': 1}", '{"a": 1'])
def test_what_is_not_json_is_not_completed(text: str) -> None:
    assert find_json(text) == []


def test_an_object_that_repeats_a_name_is_not_read() -> None:
    values = [each.value for each in find_json('{"a": 1, "a": 2}, {"b": 3}')]
    assert values == [{"b": 3}]


HOSTILE = ("[" * 10**6, '{"a":[' * 10**5, "[," * 10**5, "[1,]" * 10**4, '["' * 10**5)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:6])
def test_hostile_texts_take_little_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[object, int]:
            try:
                value, end = super().raw_decode(s, idx)
            except json.JSONDecodeError as error:
                read.append(error.pos // 16)
                raise
            read.append(end - idx)
            return value, end

    monkeypatch.setattr("judgebayes.io.json_lines.WORK", 200_000)
    monkeypatch.setattr("judgebayes.io.json_lines.DECODER", Counting())
    find_json(text)
    assert sum(read) < 3 * max(200_000, len(text))
