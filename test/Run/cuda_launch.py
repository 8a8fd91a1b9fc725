#!/usr/bin/env python3
"""Whoever starts the ranks, a job is the same: gtp-run alone, torchrun, mpirun, srun. Needs two GPUs.

srun is its environment here, and so is mpirun where it is not installed; two machines are two
processes that see a GPU each. Losses are the same bits in all. Ranks that have one GPU are refused.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import gtp
from cuda_faults import MESH, free_port
from cuda_parity import losses, plan_name, plan_options

LIMIT = 30


def clean():
    """The environment without what a launcher around this test says."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {name: value for name, value in os.environ.items()
            if name not in names and not name.startswith(("OMPI_", "SLURM_", "PMI_", "MPI_"))}


def as_torchrun(rank):
    return {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}


def as_open_mpi(rank):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


def as_hydra(rank):
    return {"PMI_RANK": str(rank), "PMI_SIZE": "2", "MPI_LOCALRANKID": str(rank), "MPI_LOCALNRANKS": "2"}


def as_srun(rank):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": str(rank),
            "SLURM_STEP_NUM_NODES": "1"}


def as_two_machines(rank):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0",
            "SLURM_STEP_NUM_NODES": "2", "MASTER_ADDR": "127.0.0.1", "CUDA_VISIBLE_DEVICES": str(rank)}


def as_a_gpu_a_task(rank):
    """As srun --gpus-per-task=1 does on one machine."""
    return dict(as_srun(rank), CUDA_VISIBLE_DEVICES=str(rank))


def as_one_gpu(rank):
    return dict(as_srun(rank), CUDA_VISIBLE_DEVICES="0")


def outputs(processes):
    """Text and exit code of each, in time."""
    try:
        texts = [process.communicate(timeout=LIMIT)[0] for process in processes]
        return [(text, process.returncode) for text, process in zip(texts, processes)]
    finally:
        for process in processes:
            process.kill()


def finish(processes):
    """All of them end well."""
    for text, code in outputs(processes):
        if code:
            raise gtp.Failed(f"exit code {code}: {text[-2000:]}")


def add_options(parser):
    parser.add_argument("--plans", type=pathlib.Path, help="folder of cuda_parity.py's plans")


def body(tools, report, arguments):
    model = gtp.HERE / "Inputs" / "torch" / "llama-tied"
    plan = (arguments.plans / plan_name(model, MESH, "adamw") if arguments.plans else
            tools.compile(model / "config.json", *plan_options(MESH, 2), "--optimizer=adamw"))
    metrics = tools.scratch / "metrics.jsonl"
    command = [str(part) for part in (
        tools.bin / "gtp-run", plan, *gtp.reference_data(model), "--backend=cuda", "--tuning-cache=off",
        "--steps=4", f"--metrics={metrics}")]

    def start(arguments, environment):
        return subprocess.Popen(arguments, env=dict(clean(), **environment),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def trained(launch):
        metrics.unlink(missing_ok=True)
        finish(launch())
        return losses([json.loads(line) for line in metrics.read_text().splitlines()])

    def ranks(environment):
        port = str(free_port())
        return [start(command, dict(environment(rank), MASTER_PORT=port)) for rank in range(2)]

    expected = []

    def alone():
        expected.extend(trained(lambda: [start(command, {})]))
        if len(expected) != 4:
            raise gtp.Failed(f"expected 4 steps, found {len(expected)}")
        return f"loss {expected[-1][0]}"

    def same(name, launch):
        def check():
            found = trained(launch)
            if found != expected:
                raise gtp.Failed(f"{found} instead of {expected}")
            return "the same bits"
        report.case(name, check)

    def installed(name, found, launcher, **environment):
        if found:
            same(name, lambda: [start(launcher + command, dict(environment, MASTER_PORT=str(free_port())))])
        else:
            print(f"  skipped {name}: it is not installed here")

    report.case("gtp-run alone", alone)
    torch = subprocess.run([sys.executable, "-c", "import torch.distributed.run"], capture_output=True)
    installed("torchrun", torch.returncode == 0,
              [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node=2",
               f"--master-port={free_port()}"])
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    mpirun = shutil.which("mpirun")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout if mpirun else ""
    # Open MPI looks for a remote shell, which ranks of one machine do without.
    installed("mpirun", mpirun, [mpirun, "-n", "2", *(root if "Open" in version else [])],
              **({} if shutil.which("ssh") else {"OMPI_MCA_plm_rsh_agent": "false"}))
    local = lambda environment: lambda: ranks(lambda rank: dict(environment(rank), MASTER_ADDR="127.0.0.1"))
    same("torchrun's environment", local(as_torchrun))
    same("Open MPI's environment", lambda: ranks(as_open_mpi))
    same("Hydra's environment", lambda: ranks(as_hydra))
    same("srun's environment", lambda: ranks(as_srun))
    same("srun's environment, a GPU a task", lambda: ranks(as_a_gpu_a_task))
    same("srun's environment on two machines", lambda: ranks(as_two_machines))

    def refused():
        for text, code in outputs(ranks(as_one_gpu)):
            if code != 1 or "error: rank 1 has the GPU of rank 0, " not in text:
                raise gtp.Failed(f"exit code {code}: {text[-2000:]}")
        return "an error of both"
    report.case("two ranks that see one GPU", refused)


if __name__ == "__main__":
    gtp.main("Whoever starts the ranks", body, add_options)
