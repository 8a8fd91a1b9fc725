#!/usr/bin/env python3
"""What ends a job: a rank that is killed or stopped, another plan on one, no windows. Needs two GPUs.

Every process must end by itself within a minute, with an error that names the rank.
"""
import os
import pathlib
import signal
import socket
import subprocess
import time

import gtp
from cuda_parity import plan_name, plan_options

LIMIT = 60
MESH = "gtp=2"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(tools, plans, model, *options):
    """A process a rank, as torchrun starts them; `plans` is the plan of each."""
    port = str(free_port())
    processes = []
    for rank, plan in enumerate(plans):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(len(plans)),
                           LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        processes.append(subprocess.Popen(
            [tools.bin / "gtp-run", plan, *gtp.reference_data(model), "--backend=cuda", *options],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    return processes


def without(variable, value, processes):
    """`processes()` with a variable of the environment for the ranks alone."""
    os.environ[variable] = value
    try:
        return processes()
    finally:
        del os.environ[variable]


def ends(processes, expected, alive):
    """Each of the ranks `alive` ends in time, in error, and says `expected`."""
    begin = time.monotonic()
    texts = []
    try:
        for rank in alive:
            left = max(1, LIMIT - (time.monotonic() - begin))
            text, _ = processes[rank].communicate(timeout=left)
            texts.append(text)
            if processes[rank].returncode == 0:
                raise gtp.Failed(f"rank {rank} ended without an error:\n{text[-2000:]}")
        for text in texts:
            if expected not in text:
                raise gtp.Failed(f"'{expected}' is not in\n{text[-2000:]}")
    finally:
        for process in processes:
            process.kill()
    return f"{time.monotonic() - begin:.1f} s"


def disturb(tools, plan, model, sent, expected):
    processes = start(tools, [plan, plan], model, "--steps=100000000")
    time.sleep(12)
    if any(process.poll() is not None for process in processes):
        raise gtp.Failed(f"the run ended early: {processes[0].communicate()[0][-2000:]}")
    processes[1].send_signal(sent)
    return ends(processes, expected, [0])


def launched(tools, plan, model):
    """gtp-run alone starts its ranks; one is killed."""
    run = subprocess.Popen([tools.bin / "gtp-run", plan, *gtp.reference_data(model), "--backend=cuda",
                            "--steps=100000000"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    time.sleep(12)
    children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    if len(children) != 2:
        raise gtp.Failed(f"expected two ranks, found {children}: {run.poll()}")
    os.kill(int(children[1]), signal.SIGKILL)
    result = ends([run], "rank 1 was ended by signal 9", [0])
    if any(pathlib.Path(f"/proc/{child}").exists() for child in children):
        raise gtp.Failed("a rank outlived the run")
    return result


def add_options(parser):
    parser.add_argument("--plans", type=pathlib.Path, help="folder of cuda_parity.py's plans")


def body(tools, report, arguments):
    model = gtp.TORCH / "llama-tied"

    def plan(name, *options):
        if arguments.plans:
            return arguments.plans / plan_name(model, MESH, name)
        return tools.compile(model / "config.json", *plan_options(MESH, 2),
                             *(options or [f"--optimizer={name}"]))

    report.case("a killed rank", lambda: disturb(
        tools, plan("adamw"), model, signal.SIGKILL, "rank 1 ended without a word"))
    report.case("a stopped rank", lambda: disturb(
        tools, plan("adamw"), model, signal.SIGSTOP, "rank 1 has given no sign of life"))
    report.case("another plan on one rank", lambda: ends(
        start(tools, [plan("adamw"), plan("sgd")], model, "--steps=3"),
        "rank 1 has another plan than rank 0", [0, 1]))
    windows = plan("windows", "--target=h200")
    report.case("no windows", lambda: ends(
        without("NCCL_WIN_ENABLE", "0", lambda: start(tools, [windows] * 2, model, "--steps=3")),
        "transport COPY_ENGINE cannot be had: NCCL takes", [0, 1]))
    report.case("a killed rank of gtp-run alone", lambda: launched(tools, plan("adamw"), model))


if __name__ == "__main__":
    gtp.main("How a job of the cuda backend ends", body, add_options)
