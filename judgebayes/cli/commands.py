"""All commands, with the records of their options."""

from judgebayes.cli.command import Command
from judgebayes.cli.requests import CollectRequest, ImportRequest
from judgebayes.experiments.request import (
    DataGetRequest,
    DataListRequest,
    ExampleRequest,
    ReproduceRequest,
)
from judgebayes.workflow import options, posterior_options

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
