from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from judgebayes.cli.records import taking_records
from judgebayes.workflow.options import Fixed


@dataclass(frozen=True)
class Inner:
    colour: Annotated[str | None, "Of the outside."] = None
    size: Annotated[int, typer.Option(min=1, help="In metres.")] = 3
    loud_horn: Annotated[bool, "Whether it can be heard."] = False


@dataclass(frozen=True, kw_only=True)
class Order:
    where: Annotated[Path, typer.Argument(help="Where it goes.")]
    inner: Annotated[Inner, Fixed({"size": 7})]
    many: Annotated[list[str] | None, "Again and again."] = None
    other: Annotated[Inner, Fixed({"colour": "blue", "loud_horn": True})]
    fixed: int = 4  # not an option


def parsed(*words: str) -> tuple[Order, int]:
    orders: list[tuple[Order, int]] = []
    app = typer.Typer()

    @app.command()
    @taking_records
    def order(order: Order, number: Annotated[int, typer.Option()] = 1) -> None:
        """Order one."""
        orders.append((order, number))

    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return orders[0]


def test_a_record_has_the_options_given_and_the_defaults() -> None:
    order, number = parsed("here")
    assert order == Order(where=Path("here"), inner=Inner(size=7), other=Inner("blue", 3, True))
    assert number == 1
    words = ("there", "--colour", "red", "--many", "a", "--many", "b", "--number", "2")
    order, number = parsed(*words, "--loud-horn")
    assert order.inner == Inner("red", 7, True)
    assert (order.many, order.fixed, number) == (["a", "b"], 4, 2)


@pytest.mark.parametrize("words", [[], ["here", "--fixed", "3"], ["here", "--no-loud-horn"]])
def test_what_is_not_an_option_is_refused(words: list[str]) -> None:
    with pytest.raises(AssertionError):
        parsed(*words)
