"""The command line: `judgebayes --help`.

Heavy imports wait until a command runs. This package may import all others; only `__main__`
imports it. `COMMANDS` has all commands, with the records of their options.
"""

import contextlib
import gc
import inspect
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, UnknownOptionError
from rich.markup import escape

from judgebayes.cli.command import GROUPS, Command, CommandLine, TwoColumns, definitions, paragraphs
from judgebayes.cli.machine import run_command, show_candidates
from judgebayes.cli.requests import CollectRequest, ImportRequest
from judgebayes.errors import AmbiguousStudy, JudgeBayesError
from judgebayes.experiments.request import (
    DataGetRequest,
    DataListRequest,
    ExampleRequest,
    ReproduceRequest,
)
from judgebayes.io.formats import FORMATS
from judgebayes.show.console import Console
from judgebayes.workflow import options, posterior_options
from judgebayes.workflow.machine import BAD_INPUT, INTERRUPTED, TERMINATED

COMMANDS = {
    each.name: each
    for each in (
        Command("reproduce", ReproduceRequest, "experiments.reproducing:reproduce"),
        Command("collect", CollectRequest, "cli.collecting:collect"),
        Command("check", options.CheckRequest, "workflow.checking:check"),
        Command("calibrate", options.CalibrateRequest, "workflow.calibrating:calibrate"),
        Command("apply", options.ApplyRequest, "workflow.applying:apply"),
        Command("diagnose", options.DiagnoseRequest, "workflow.diagnosing:diagnose"),
        Command("ensemble", options.EnsembleRequest, "workflow.ensembling:ensemble"),
        Command("precision", options.PrecisionRequest, "workflow.precision:precision"),
        Command("posterior", posterior_options.PosteriorRequest, "workflow.posterior:posterior"),
        Command("compare", posterior_options.CompareRequest, "workflow.posterior:compare"),
        Command("import", ImportRequest, "cli.importing:import_file"),
        Command("example", ExampleRequest, "experiments.getting:write_example"),
        Command("data list", DataListRequest, "experiments.getting:list_data"),
        Command("data get", DataGetRequest, "experiments.getting:get_data"),
    )
}


__all__ = ["app", "main", "run"]


def _version() -> str:
    from judgebayes import __version__

    return f"judgebayes {__version__}"


def _app(name: str, says: str, **more: Any) -> App:
    return App(
        name=name,
        help=says,
        help_flags=("-h", "--help"),
        help_format="plaintext",
        help_formatter=TwoColumns(),
        group_arguments=GROUPS["Arguments"],
        group_parameters=GROUPS["Options"],
        **more,
    )


app = _app(
    "judgebayes",
    "Aggregate and calibrate the votes of LLM judges, and reproduce four papers about them.",
    version=_version,
    version_flags=("--version",),
)
data_app = _app(
    "data", "Fetch the public data sets that `reproduce` reads, and list them.", version_flags=()
)
app.command(data_app)
app.register_install_completion_command()


def _runner(command: Command) -> Callable[..., None]:
    """Return the function that Cyclopts calls with the options that were typed."""
    signature = command.signature()

    def run(*given: Any, **named: Any) -> None:
        values = signature.bind(*given, **named).arguments
        run_command(CommandLine(command, values, COMMANDS))

    vars(run)["__signature__"] = signature
    run.__annotations__ = {n: each.annotation for n, each in signature.parameters.items()}
    return run


def _formats() -> str:
    """Return one line per format that `judgebayes import` reads."""
    return "\n".join(
        textwrap.fill(f"* {name}: {form.says}", 76, subsequent_indent="  ")
        for name, form in FORMATS.items()
    )


def _epilogue(command: Command) -> str | None:
    """Return the keys of a command, for the end of its help."""
    listed = definitions(command.keys.items())
    return "\n".join(["Keys of --set:", *listed]) if listed else None


for _command in COMMANDS.values():
    _group, _, _name = _command.name.rpartition(" ")
    (data_app if _group else app).command(
        _runner(_command),
        name=_name,
        help=paragraphs(inspect.getdoc(_command.record) or "").replace("{formats}", _formats()),
        help_epilogue=_epilogue(_command),
        version_flags=(),
    )


def run(words: Sequence[str]) -> None:
    """Run a command line; a word that is wrong in it is an error in one sentence.

    Raises
    ------
    JudgeBayesError
        For an unknown command, option or value, and for bad input.
    SystemExit
        With the exit code, if it is not 0.
    """
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        if isinstance(error, UnknownOptionError):
            _refuse_key(str(error.token.keyword or error.token.value), words)
        raise JudgeBayesError(" ".join(str(error).split())) from error


def _refuse_key(typed: str, words: Sequence[str]) -> None:
    """Say how a key of the study is given, if it was typed as an option."""
    key = typed.partition("=")[0].removeprefix("--").removeprefix("no-").replace("-", "_")
    if words[0] in COMMANDS and key in COMMANDS[words[0]].keys:
        raise JudgeBayesError(f"{typed} is a key of the study: --set {key}=VALUE.")


def main() -> None:
    """Run the command line; an expected error is printed as one sentence, without a traceback."""
    _set_environment()
    # At the default threshold, garbage collection takes a tenth of the time of tracing programs.
    gc.set_threshold(100_000, 20, 100)
    signal.signal(signal.SIGTERM, _end)
    code: object = 0
    try:
        run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    except JudgeBayesError as error:
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
