"""Check the JSON of commands against the schema that the package ships."""

import json
from typing import Any

import jsonschema

from judgebayes.workflow.machine import schema

__all__ = ["check_document", "closed", "closed_schema"]


def closed(node: Any) -> Any:
    """Return a schema that refuses keys that it does not describe."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    inner = {key: closed(each) for key, each in node.items()}
    # Conditions see only some keys.
    return inner | {"additionalProperties": False} if {"type", "properties"} <= {*inner} else inner


def closed_schema() -> jsonschema.Draft202012Validator:
    """Return the validator of the shipped schema, which refuses keys that it does not describe."""
    return jsonschema.Draft202012Validator(closed(schema()))


def check_document(text: str) -> dict[str, Any]:
    """Return the document in a text, after checking that it is valid, complete and without NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content: dict[str, Any] = json.loads(text, parse_constant=refuse)
    closed_schema().validate(content)
    return content
