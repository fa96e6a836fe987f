"""Several devices: virtual devices of one process, and two processes on one machine."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def start(devices: int, *arguments: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} "
        f"--xla_force_host_platform_device_count={devices}",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
    }
    command = [sys.executable, str(HERE / "sharded.py"), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(program: subprocess.Popen[str]) -> dict:
    out, _ = program.communicate(timeout=300)
    assert program.returncode == 0
    return json.loads(out.splitlines()[-1])


def test_eight_devices_give_the_result_of_one() -> None:
    answers = answer(start(8))
    assert answers["devices"] == 8
    for results, splits, same_items in answers["counts"]:
        assert (results, same_items) == (splits, 1)
    single, together = answers["sweep"]
    np.testing.assert_allclose(together, single, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_two_processes_give_the_result_of_one() -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    single = start(1)
    programs = [start(1, rank, 2, port) for rank in range(2)]
    expected, *answers = [answer(p) for p in (single, *programs)]
    for one in answers:
        assert one["devices"] == 2
        np.testing.assert_allclose(one["sweep"][1], expected["sweep"][0], rtol=1e-9)
