"""The command line: `judgebayes --help`.

Heavy imports wait until a command runs. This package may import all others; only `__main__`
imports it.
"""

import contextlib
import gc
import inspect
import os
import signal
import textwrap
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from judgebayes.cli import requests
from judgebayes.cli.command import CommandWithHeadings, Context, command_line
from judgebayes.cli.machine import (
    completing,
    for_machines,
    parameter_of,
    show_candidates,
)
from judgebayes.errors import AmbiguousStudy, JudgeBayesError
from judgebayes.experiments.request import ReproduceRequest
from judgebayes.io.formats import FORMATS
from judgebayes.workflow import options, posterior_options
from judgebayes.workflow.machine import BAD_INPUT, INTERRUPTED, TERMINATED, CommandResult
from judgebayes.workflow.records import taking_fields

__all__ = ["app", "main"]

app = typer.Typer(
    name="judgebayes",
    help="Aggregate and calibrate the votes of LLM judges, and reproduce four papers about them.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # its tables truncate options and words at 80 columns
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DATA_HELP = "Fetch the public data sets that `reproduce` reads, and list them."
data_app = typer.Typer(name="data", help=DATA_HELP, short_help=DATA_HELP, no_args_is_help=True)
app.add_typer(data_app)


def command(
    name: str | None = None, *, group: typer.Typer = app, help: str | None = None
) -> Callable[[Callable[..., CommandResult]], Callable[..., None]]:
    """Return a decorator that adds a command, with the options of its records and those for machines."""

    def decorate(function: Callable[..., CommandResult]) -> Callable[..., None]:
        own = name or function.__name__
        called = own if group is app else f"{group.info.name} {own}"
        return group.command(own, help=help, cls=CommandWithHeadings)(
            for_machines(called)(taking_fields(function, parameter_of))
        )

    return decorate


def asking(record: type, place: str) -> Callable[..., CommandResult]:
    """Return a command with the options and the help of a record, which runs `module:function`.

    The module of this package is imported only then.
    """

    def run(request: Any) -> CommandResult:
        module, _, function = place.partition(":")
        asked = getattr(import_module(f"{__name__}.{module}"), function)
        result: CommandResult = asked(request)
        return result

    run.__annotations__["request"] = record
    run.__doc__ = record.__doc__
    return run


def question(record: type, place: str) -> Callable[..., CommandResult]:
    """Return a command that asks `module:function` of the workflow and prints the answer."""

    def run(context: Context, request: Any) -> CommandResult:
        from judgebayes.cli.answering import answered

        module, _, function = place.partition(":")
        return answered(
            context, getattr(import_module(f"judgebayes.workflow.{module}"), function), request
        )

    run.__annotations__["request"] = record
    run.__doc__ = record.__doc__
    return run


Cache = Annotated[
    Path | None,
    typer.Option(help="Where to store the data sets; by default the user's cache folder."),
]


def _version_and_end(wanted: bool) -> bool:
    if wanted:
        from judgebayes import __version__

        typer.echo(f"judgebayes {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version_and_end, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def _import_help() -> str:
    """Return the help of `judgebayes import`, with one line per format."""
    listed = "\n".join(
        textwrap.fill(f"* {name}: {form.says}", 76, subsequent_indent="  ")
        for name, form in FORMATS.items()
    )
    return (
        "Convert votes from other tools' files into a tidy table that every other command reads.\n\n"
        f"FORMAT is one of\n\n\b\n{listed}\n\n"
        "An answer that cannot be read as a vote becomes a missing vote. The counts of all records are "
        "printed."
    )


@command()
def reproduce(context: Context, request: ReproduceRequest) -> CommandResult:
    """Reproduce the papers' tables and figures, next to the published numbers and an audit.

    Each experiment runs in its own process. If one fails, the others still run; the failed ones are
    listed with their logs at the end, and the exit status is 1.
    """
    from judgebayes.experiments.reproducing import list_experiments, merge_shards, reproduce_papers

    if request.listed:
        return list_experiments(request.what or [])
    if request.merge:
        return merge_shards([Path(folder) for folder in request.what or []], request.out)
    return reproduce_papers(request, command_line(context))


command("collect")(asking(requests.CollectRequest, "collecting:collect"))
command("check")(question(options.CheckRequest, "checking:check"))
command("calibrate")(question(options.CalibrateRequest, "calibrating:calibrate"))
command("apply")(question(options.ApplyRequest, "applying:apply"))
command("diagnose")(question(options.DiagnoseRequest, "diagnosing:diagnose"))
command("ensemble")(question(options.EnsembleRequest, "ensembling:ensemble"))
command("precision")(question(options.PrecisionRequest, "precision:precision"))


command("posterior")(question(posterior_options.PosteriorRequest, "posterior:posterior"))
command("compare")(question(posterior_options.CompareRequest, "posterior:compare"))
command("import", help=_import_help())(asking(requests.ImportRequest, "importing:import_file"))


def _data_names(incomplete: str) -> list[str]:
    from judgebayes.experiments.public import SOURCES

    return completing([*SOURCES, "all"])(incomplete)


@command("list", group=data_app)
def data_list(cache: Cache = None) -> CommandResult:
    """List the data sets: what they are, which ones are downloaded, licence and source."""
    from judgebayes.experiments.getting import list_data

    return list_data(cache)


@command("get", group=data_app)
def data_get(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Names from `judgebayes data list`, or `all`.",
            autocompletion=_data_names,
        ),
    ],
    cache: Cache = None,
    local: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Read a clone of the data set's repository, or a folder with its files, instead of "
            "downloading.",
        ),
    ] = None,
) -> CommandResult:
    """Fetch data sets at their pinned commits, check every file, and convert them.

    Complete data sets are not fetched again; an interrupted download resumes.
    """
    from judgebayes.experiments.getting import get_data

    return get_data(names, cache, local)


@command()
def example(
    folder: Annotated[Path, typer.Argument(help="Where to write votes.csv and labels.csv.")] = Path(
        "example"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the simulated votes.")] = 0,
) -> CommandResult:
    """Write small simulated files of votes and labels, to try the other commands on."""
    from judgebayes.experiments.getting import write_example

    return write_example(folder, seed)


def _list_whole_summaries(*apps: typer.Typer) -> None:
    """Show the whole first sentence of each command in lists, not only what fits on a line."""
    for registered in (one for each in apps for one in each.registered_commands):
        text = registered.help or inspect.getdoc(registered.callback) or ""
        registered.short_help = " ".join(text.partition("\n\n")[0].split())


_list_whole_summaries(app, data_app)


def main() -> None:
    """Run the command line; an expected error is printed as one sentence, without a traceback."""
    _set_environment()
    # At the default threshold, garbage collection takes a tenth of the time of tracing programs.
    gc.set_threshold(100_000, 20, 100)
    signal.signal(signal.SIGTERM, _end)
    code: object = 0
    try:
        app(prog_name="judgebayes")
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    except JudgeBayesError as error:
        from rich.markup import escape

        from judgebayes.show.console import Console

        console = Console(stderr=True)
        words = error.question if isinstance(error, AmbiguousStudy) else str(error)
        console.print(f"[bold red]Error:[/] {escape(words)}", soft_wrap=not console.is_terminal)
        if isinstance(error, AmbiguousStudy):
            show_candidates(error)
        code = BAD_INPUT
    raise SystemExit(code)


def _end(number: int, _: FrameType | None) -> NoReturn:
    """End the command at its next Python step, as Ctrl-C does; a second signal ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(TERMINATED)


def _set_environment() -> None:
    """Set defaults of JAX, XLA and OpenBLAS that the user's environment does not set.

    Compiled programs are cached in the user's cache folder, so that later calls start faster; small
    ones too, because there are a hundred of them. Matrix factorisations are small and many, so
    threads inside one only wait for each other. Asynchronous dispatch gains nothing where every
    method has its own thread. The compiler's log is silenced, because some versions print a page of
    wrong warnings about processor features for every cached program. JAX 0.9, the last version for
    Python 3.11, has two code generators; the newer one takes a quarter longer to compile programs
    that are no faster.
    """
    _name_cache()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_CPU_ENABLE_ASYNC_DISPATCH", "false")
    # JAX sets 1 where nothing is set, which the commands of a notebook inherit.
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if metadata.version("jaxlib").startswith("0.9."):
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")


def _name_cache() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless the environment names another.

    Programs that are read from it are run, so a new folder is the user's alone.
    """
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("judgebayes"))
    with contextlib.suppress(OSError):  # a home that cannot be written to
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
