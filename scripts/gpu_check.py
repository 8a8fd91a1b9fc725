"""What gpu_check.sh runs: programs beside each other on the GPUs, then a table of them.

Standard library only.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command_line import Parser, number, one_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "test/Run"
MODELS = sorted(path.name for path in (TESTS / "Inputs/torch").iterdir())
# Those that run everything on two GPUs too, and under memcheck; what differs in the others is
# kernels and weights, which one GPU and one run of each type on two show.
WHOLE = ["gpt2", "llama-tied", "llama-untied"]
BRIEF = ["--meshes=gtp=2", "--cases=sgd,windows,bf16"]
# Parts of the kernel suite that a sanitizer runs beside each other.
SHARDS = 8


class Row:
    """One program of the table; `state` is ok, FAIL, skipped or stopped."""

    def __init__(self, name, state="", text="", seconds=0.0):
        self.name, self.state, self.text, self.seconds = name, state, text, seconds


class Check:
    def __init__(self, options):
        self.options = options
        self.deadline = time.monotonic() + options.limit
        self.rows = []

    def run(self, name, command, environment=None, judge=None):
        """Runs a program to its end or that of the time; a row."""
        begin = time.monotonic()
        left = self.deadline - begin
        row = Row(name)
        if left < 2:
            row.state, row.text = "stopped", "the time was up before it began"
            return self.add(row)
        # A tuning cache each: what others write would change which algorithms a second run takes.
        with tempfile.TemporaryDirectory() as cache:
            process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                       env=dict(os.environ, XDG_CACHE_HOME=cache, **(environment or {})))
            try:
                text, _ = process.communicate(timeout=left)
                row.state = "ok" if process.returncode == 0 else "FAIL"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                text, _ = process.communicate()
                row.state = "FAIL" if "FAIL" in text else "stopped"
        row.seconds = time.monotonic() - begin
        row.text = (judge or last_line)(text)
        if row.state == "FAIL":
            self.options.out.mkdir(parents=True, exist_ok=True)
            log = self.options.out / (re.sub(r"\W+", "-", name) + ".log")
            log.write_text(text)
            row.text += f" (all of it: {log})"
        return self.add(row)

    def skip(self, name, why):
        self.add(Row(name, "skipped", why))

    def add(self, row):
        self.rows.append(row)
        print(f"  {row.state:<8}{row.name:<44}{row.seconds:6.1f} s  {row.text}", flush=True)
        return row

    def finish(self):
        count = {state: sum(row.state == state for row in self.rows) for state in ("ok", "FAIL", "skipped", "stopped")}
        print(f"\n{count['ok']} ok, {count['FAIL']} failed, {count['skipped']} skipped, "
              f"{count['stopped']} stopped by --limit={self.options.limit:g}")
        for row in self.rows:
            if row.state != "ok":
                print(f"  {row.state:<8}{row.name}: {row.text}")
        # What was stopped was not shown to be right.
        sys.exit(1 if count["FAIL"] or count["stopped"] or not count["ok"] else 0)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:160] if lines else "no output"


def suite_result(text):
    """What a GoogleTest program says of its tests."""
    passed = re.search(r"\[  PASSED  \] (\d+) tests?", text)
    skipped = re.search(r"\[  SKIPPED \] (\d+) tests?", text)
    failed = re.findall(r"\[  FAILED  \] (\S+)", text)
    return ", ".join(filter(None, [f"{passed[1]} passed" if passed else "",
                                   f"{skipped[1]} skipped" if skipped else "",
                                   "failed: " + " ".join(sorted(set(failed))[:6]) if failed else ""])) or last_line(text)


def sanitizer_result(text):
    found = re.search(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", text)
    return found[1] if found else last_line(text)


def count_gpus():
    if not shutil.which("nvidia-smi"):
        return 0
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return len(done.stdout.splitlines()) if done.returncode == 0 else 0


def find_sanitizer():
    for folder in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        path = pathlib.Path(folder) / "bin/compute-sanitizer"
        if folder and path.exists():
            return path
    return shutil.which("compute-sanitizer")


def script_command(options, script, *more):
    plans = [f"--plans={options.plans}"] if options.plans else []
    return [sys.executable, TESTS / script, f"--bin={options.bin}", *plans, *more]


def parity_command(options, gpus, model, *more):
    return script_command(options, "cuda_parity.py", f"--gpus={gpus}", f"--models={model}", *more)


def alone_on(gpus, i):
    """The environment of work i, which has one GPU: i, i + n, ... have the same."""
    return {"CUDA_VISIBLE_DEVICES": str(i % gpus)}


def parity_jobs(options, gpus):
    """Name, program, environment and judge of each; what needs two GPUs has the first two."""
    yield "kernels and collectives", [options.bin / "runtime-cuda-tests", "--gtest_brief=1"], None, suite_result
    if gpus >= 2:
        yield "2 GPUs, transports", script_command(options, "cuda_transports.py"), None, None
        for model in WHOLE:
            for mesh in ("gtp=2", "dp=2"):
                yield f"2 GPUs, {model}, {mesh}", parity_command(options, 2, model, f"--meshes={mesh}"), None, None
        for model in MODELS:
            if model not in WHOLE:
                yield f"2 GPUs, {model}", parity_command(options, 2, model, *BRIEF), None, None
    count = min(gpus, 2)
    yield (f"{count} GPU{'s' if count > 1 else ''}, {WHOLE[0]}, algorithms measured",
           parity_command(options, count, WHOLE[0], "--measure-algorithms"), None, None)
    for i, model in enumerate(MODELS):
        yield f"1 GPU, {model}", parity_command(options, 1, model), alone_on(gpus, i), None


def sanitizer_jobs(options, gpus, sanitizer):
    """The same of whole runs under memcheck, and of the kernels under memcheck and racecheck."""
    memcheck = f"--memcheck={sanitizer}"
    for i, model in enumerate(WHOLE):
        if gpus >= 2:
            yield f"memcheck, 2 GPUs, {model}", parity_command(options, 2, model, "--meshes=gtp=2", memcheck), None, None
        yield f"memcheck, 1 GPU, {model}", parity_command(options, 1, model, memcheck), alone_on(gpus, i), None
    for tool in ("memcheck", "racecheck"):
        for shard in range(SHARDS):
            environment = dict(alone_on(gpus, shard), GTEST_TOTAL_SHARDS=str(SHARDS), GTEST_SHARD_INDEX=str(shard))
            command = [sanitizer, "--tool", tool, "--error-exitcode", "9", options.bin / "runtime-cuda-tests",
                       "--gtest_brief=1", "--gtest_filter=Registry/*:Kernels.*"]
            yield f"{tool} of the kernels, part {shard + 1} of {SHARDS}", command, environment, sanitizer_result


def parity(check, gpus):
    options = check.options
    jobs = list(parity_jobs(options, gpus))
    if gpus < 2:
        check.skip("2 GPUs", "this machine has one GPU")
    if sanitizer := find_sanitizer():
        jobs += sanitizer_jobs(options, gpus, sanitizer)
    else:
        check.skip("memcheck and racecheck", "compute-sanitizer is neither in PATH nor in CUDA_HOME/bin")
    cores = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(options.jobs or max(1, min(12, cores // 2))) as pool:
        list(pool.map(lambda job: check.run(*job), jobs))


def faults(check, gpus):
    if gpus < 2:
        check.skip("faults", f"needs 2 GPUs; this machine has {gpus}")
        return
    options = check.options
    check.run("killed, stopped, another plan, no windows", script_command(options, "cuda_faults.py"))
    check.run("gtp-run alone, torchrun, mpirun, srun", script_command(options, "cuda_launch.py"))


def make_plans(options):
    """Plans of all models and meshes, for a machine without gtp-opt."""
    for script in (["cuda_parity.py", "--gpus=1"], ["cuda_parity.py", "--gpus=2"], ["cuda_transports.py"]):
        done = subprocess.run([sys.executable, TESTS / script[0], f"--bin={options.bin}", *script[1:],
                               f"--plans={options.make_plans}", "--make-plans"])
        if done.returncode:
            sys.exit(done.returncode)


def main():
    p = Parser(prog="gpu_check.sh", description="Checks of the CUDA backend on this machine's GPUs.")
    p.add_argument("what", type=one_of("parity", "faults"), metavar="parity|faults")
    p.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    p.add_argument("--plans", type=pathlib.Path, help="folder of plans that --make-plans made")
    p.add_argument("--make-plans", type=pathlib.Path, metavar="DIR", help="make the plans and stop")
    p.add_argument("--limit", type=number(0, float), default=520, help="seconds, what was built before left out (520)")
    p.add_argument("--jobs", type=number(1), help="programs beside each other (half the cores, at most 12)")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build-gpu/logs", help="folder of failures' logs")
    options = p.parse_args()
    fail = lambda text: sys.exit(f"gpu_check.py: error: {text}")
    for name in ["gtp-opt"] if options.make_plans else ["gtp-run", *["runtime-cuda-tests"][:options.what == "parity"]]:
        if not (options.bin / name).exists():
            fail(f"{options.bin}: there is no {name}")
    if options.make_plans:
        return make_plans(options)
    if not options.plans and not (options.bin / "gtp-opt").exists():
        fail(f"{options.bin}: there is no gtp-opt to make plans with; make them on a machine that has it "
             "(--make-plans=DIR), and give --plans=DIR here")
    gpus = count_gpus()
    if not gpus:
        fail("nvidia-smi shows no GPU; these are checks of GPUs (the host backend's are in scripts/check.sh)")
    check = Check(options)
    print(f"{options.what} on {gpus} GPU{'s' if gpus > 1 else ''}", flush=True)
    (parity if options.what == "parity" else faults)(check, gpus)
    check.finish()


if __name__ == "__main__":
    main()
