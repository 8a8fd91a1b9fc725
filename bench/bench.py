"""Measures gtp-run and the peer on the GPUs of this machine; see run.sh.

A phase is one process group: gtp-run with one plan, or the peer at one sequence length.
Each prints a line when it ends and is in results.json and results.md from then on, so
that a run which is ended early loses only the phase at work. Standard library only.
"""
import array
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

import report

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "scripts"))
from command_line import Parser, number, one_of, some  # noqa: E402
# Both sides: what enters the numbers, beside the model and the sequence.
TYPES = ["--dtype=bf16", "--grad-dtype=bf16", "--reduce-dtype=bf16"]
OPTIMIZER = dict(lr="1e-4", betas="0.9,0.95", weight_decay="0.1", clip_norm="1")
# Steps that a program runs before its times count: the graph is made in the third.
WARM = 4
# Steps whose operations are timed (gtp-run --profile).
TIMED = 16
# Steps without collectives, of which the first makes their graph; every other one is timed.
ALONE = 20


def fail(text):
    sys.exit(f"bench.py: error: {text}")


def config(path):
    """The model's config.json, with what both sides take from it."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        fail(f"--model={path}: expected a config.json of a Llama: {error}")
    for key in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
                "num_key_value_heads", "vocab_size"):
        if not isinstance(found, dict) or not isinstance(found.get(key), int):
            fail(f"--model={path}: expected a config.json of a Llama, which has an integer {key}")
    return found


class Bench:
    def __init__(self, options):
        self.options = options
        self.config = config(options.model)
        self.out = options.out
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"{self.out}: cannot make this folder: {error.strerror}")
        self.deadline = time.monotonic() + options.limit
        self.results = dict(model=options.model.stem, gpus=options.gpus, steps=options.steps,
                            types=" ".join(TYPES), optimizer=OPTIMIZER, ours=[], peer=[],
                            shape=dict(vocabulary=self.config["vocab_size"], hidden=self.config["hidden_size"],
                                       layers=self.config["num_hidden_layers"]),
                            revision=revision(options.revision), machine=machine(), notes=[])

    def left(self):
        return self.deadline - time.monotonic()

    def save(self):
        """Whole files, whenever the process ends."""
        if self.options.make_plans:
            return
        texts = {"results.json": json.dumps(self.results, indent=1) + "\n",
                 "results.md": report.page(self.results)}
        for name, text in texts.items():
            part = self.out / (name + ".part")
            part.write_text(text)
            part.replace(self.out / name)

    def note(self, text):
        print(f"  skipped: {text}", flush=True)
        self.results["notes"].append(text)
        self.save()

    # Plans.

    def name(self, sequence, attention):
        return f"{self.options.model.stem}-gtp{self.options.gpus}-{sequence}-{attention}"

    def compile(self, sequence, attention, folder):
        """Makes a plan and its prediction; None, with a note, where gtp-opt refuses."""
        plan = folder / (self.name(sequence, attention) + ".gtpplan")
        target = target_for(self.options.target, sequence)
        command = [self.options.bin / "gtp-opt", self.options.model, f"--mesh=gtp={self.options.gpus}",
                   f"--seq={sequence}", "--micro-batch=1", f"--global-batch={self.options.gpus}",
                   *TYPES, f"--clip-norm={OPTIMIZER['clip_norm']}", f"--target={target}",
                   f"--memory-budget={self.options.memory_budget}", f"--attention-backward={attention}",
                   *self.options.plan_options.split(), "--emit=plan", "-o", plan,
                   f"--stats={plan.with_suffix('.json')}"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode == 0:
            # Where a page of results says what a prediction was made from.
            stats = plan.with_suffix(".json")
            stats.write_text(json.dumps(dict(read_json(stats), target=target), indent=1) + "\n")
            return plan
        self.note(f"no plan for sequence {sequence}, attention {attention}: {done.stderr.strip()[-400:]}")
        return None

    def plan(self, sequence, attention):
        if not self.options.plans:
            return self.compile(sequence, attention, self.out)
        plan = self.options.plans / (self.name(sequence, attention) + ".gtpplan")
        if plan.exists():
            return plan
        self.note(f"{plan} is not there; bench/run.sh --make-plans={self.options.plans} makes it "
                  "on a machine with gtp-opt")
        return None

    # Phases.

    def run(self, command, log, environment=None):
        """Runs a program until it ends or the time is up; how it ended, "" for well."""
        with open(log, "w") as out:
            process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)
            try:
                code = process.wait(timeout=max(self.left() - 5, 1))
                tail = "" if code == 0 else log.read_text(errors="replace").strip()[-600:]
                return f"exit code {code}: {tail}" if code else ""
            except subprocess.TimeoutExpired:
                return "the time was up"
            finally:
                end_group(process)

    def ours(self, sequence, attention):
        label = f"gtp-run, sequence {sequence}, attention {attention}"
        if self.left() < self.options.least:
            return self.note(f"{label}: {self.left():.0f} s are left")
        plan = self.plan(sequence, attention)
        if not plan:
            return None
        data = self.tokens()
        metrics = self.out / (plan.stem + ".jsonl")
        # Full steps, timed ones, one that keeps what collectives write, then steps without them.
        timed = 0 if self.options.no_profile else TIMED
        keep = WARM + self.options.steps + timed
        profile, trace = (self.out / f"{plan.stem}.{what}.json" for what in ("profile", "trace"))
        for old in (metrics, profile, trace):
            old.unlink(missing_ok=True)
        command = [self.options.bin / "gtp-run", plan, "--backend=cuda", f"--data={data}", "--token-bits=32",
                   f"--steps={keep + ALONE}", f"--without-collectives={keep}", f"--lr={OPTIMIZER['lr']}",
                   f"--betas={OPTIMIZER['betas']}", f"--weight-decay={OPTIMIZER['weight_decay']}",
                   f"--metrics={metrics}", f"--tuning-cache={self.out / 'tuning.json'}", *self.options.run_options.split()]
        if timed:
            command += [f"--profile={profile}", f"--trace={trace}"]
        if self.options.gpus == 1:
            command = [part for part in command if not str(part).startswith("--without-collectives")]
        idle = used_memory()
        begin = time.monotonic()
        ended = self.run(command, self.out / (plan.stem + ".log"))
        entry = measured(metrics, keep)
        entry.update(sequence=sequence, attention=attention, ended=ended, idle_bytes=idle,
                     measured=(read_json(profile) or {}).get("measured", {}).get("step"),
                     seconds=time.monotonic() - begin, prediction=read_json(plan.with_suffix(".json")))
        return self.add("ours", label, entry)

    def peer(self, sequence):
        label = f"FSDP2 + compile, sequence {sequence}"
        if self.left() < self.options.least:
            return self.note(f"{label}: {self.left():.0f} s are left")
        log = self.out / f"peer-{sequence}.log"
        c = self.config
        command = [self.options.peer_python, "-m", "torch.distributed.run", "--standalone",
                   f"--nproc-per-node={self.options.gpus}", HERE / "peers" / "fsdp2_llama.py",
                   "--layers", c["num_hidden_layers"], "--hidden", c["hidden_size"],
                   "--ffn", c["intermediate_size"], "--heads", c["num_attention_heads"],
                   "--kv", c["num_key_value_heads"], "--vocab", c["vocab_size"], "--seq", sequence,
                   "--batch", 1, "--steps", self.options.steps, "--reduce-dtype", "bf16",
                   "--lr", OPTIMIZER["lr"], "--betas", OPTIMIZER["betas"],
                   "--weight-decay", OPTIMIZER["weight_decay"], "--clip-norm", OPTIMIZER["clip_norm"]]
        # PyTorch brings its own CUDA libraries.
        environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        begin = time.monotonic()
        ended = self.run(command, log, environment)
        entry = next((json.loads(line) for line in log.read_text(errors="replace").splitlines()
                      if line.startswith("{")), {})
        entry.update(sequence=sequence, ended=ended, seconds=time.monotonic() - begin)
        return self.add("peer", label, entry)

    def add(self, side, label, entry):
        self.results[side].append(entry)
        self.save()
        print(report.line(self.results, side, label, entry), flush=True)

    def tokens(self):
        """Random ids of the whole vocabulary, as many as many samples need."""
        path = self.out / "tokens.bin"
        if not path.exists():
            draw = random.Random(0).random
            vocabulary = self.config["vocab_size"]
            ids = array.array("I", (int(draw() * vocabulary) for _ in range(1 << 19)))
            path.write_bytes(ids.tobytes())
        return path

    def all(self):
        print(f"{self.results['machine']}; results in {self.out}", flush=True)
        order = [("ours", s, self.options.attention[0]) for s in self.options.seq]
        order += [("peer", s, "") for s in self.options.seq]
        order += [("ours", s, a) for a in self.options.attention[1:] for s in self.options.seq]
        for side, sequence, attention in order:
            if side in self.options.skip:
                continue
            if side == "ours":
                self.ours(sequence, attention)
            else:
                self.peer(sequence)
        self.save()
        print()
        print(report.tables(self.results))
        if not any("step_ms" in e for e in self.results["ours"] + self.results["peer"]):
            fail(f"nothing was measured; the logs are in {self.out}")


def end_group(process):
    """Ends what is left of a program and of the processes that it has started."""
    for number, wait in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=wait)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def target_for(given, sequence):
    """What --target means for a sequence: by default the H200 as measured on another model at
    as many tokens, where that was done."""
    if given:
        return given.replace("{sequence}", str(sequence))
    profile = HERE / f"results/profiles/h200-qwen2.5-7b-{sequence}.json"
    return os.path.relpath(profile) if profile.exists() else "h200"


def read_json(path):
    return json.loads(path.read_text()) if path.exists() else None


def measured(metrics, keep):
    """What the lines of --metrics say; `keep` is the last step with collectives."""
    lines = []
    for line in metrics.read_text().splitlines() if metrics.exists() else []:
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass  # cut off when the program was ended
    full = [l for l in lines if WARM <= l["step"] < keep and not {"graph_nodes", "timed"} & set(l)]
    alone = [l for l in lines if l.get("without_collectives") and not {"graph_nodes", "timed"} & set(l)]
    entry = {}
    if full:
        entry = dict(step_ms=[l["step_ms"] for l in full], wall_ms=[l["wall_ms"] for l in full], device_ms=[l["device_ms"] for l in full],
                     launch_ms=statistics.median(l["launch_ms"] for l in full),
                     device_bytes=max(l["device_bytes"] for l in full), peak_bytes=full[0]["peak_bytes"],
                     first_loss=lines[0]["loss"], last_loss=full[-1]["loss"],
                     skipped=sum("skipped" in l for l in full))
    if alone:
        entry.update(alone_ms=[l["device_ms"] for l in alone], alone_skipped=sum("skipped" in l for l in alone))
    made = [l for l in lines if "graph_nodes" in l and not {"without_collectives", "timed"} & set(l)]
    if made:
        entry.update({key: made[0][key] for key in ("graph_nodes", "capture_ms", "instantiate_ms")})
    return entry


def output(*command):
    """What a program prints; None where it is not there or fails."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def used_memory():
    """Bytes in use on GPU 0."""
    text = output("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0")
    return int(text) << 20 if text and text.isdigit() else None


def machine():
    text = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    names = (text or "no nvidia-smi").splitlines()
    return f"{len(names)} x {names[0]}"


def revision(given):
    return given or output("git", "-C", str(HERE), "describe", "--always", "--dirty") or "unknown"


def parse():
    p = Parser(prog="run.sh", description=__doc__.splitlines()[0])
    p.add_argument("--bin", type=pathlib.Path, required=True, help="folder of gtp-run, and of gtp-opt without --plans")
    p.add_argument("--plans", type=pathlib.Path, help="folder of plans that --make-plans made")
    p.add_argument("--make-plans", type=pathlib.Path, metavar="DIR", help="make the plans and stop")
    p.add_argument("--out", type=pathlib.Path, default=HERE / "out", help="folder of results (bench/out)")
    p.add_argument("--model", type=pathlib.Path, help="config.json of a Llama (llama-3.1-8b)",
                   default=HERE.parent / "test/Import/Inputs/llama-3.1-8b.json")
    p.add_argument("--gpus", type=number(1), default=2)
    p.add_argument("--seq", type=some(number(1)), default=[4096, 1024], help="4096,1024")
    p.add_argument("--attention", type=some(one_of("deterministic", "fast")), default=["deterministic", "fast"],
                   help="deterministic,fast")
    p.add_argument("--steps", type=number(1), default=32, help="steps that are timed (32)")
    p.add_argument("--no-profile", action="store_true", help="no steps with timed operations")
    p.add_argument("--skip", type=some(one_of("ours", "peer")), default=[], help="ours or peer: sides that are not measured")
    p.add_argument("--limit", type=number(0, float), default=540, help="seconds that all of it may take (540)")
    p.add_argument("--least", type=number(0, float), default=40, help="seconds below which no phase is begun (40)")
    p.add_argument("--target", help="of gtp-opt, '{sequence}' replaced by the sequence "
                   "(results/profiles/h200-qwen2.5-7b-{sequence}.json, else h200)")
    p.add_argument("--memory-budget", default="130GiB", help="of gtp-opt (130GiB)")
    p.add_argument("--plan-options", default="", help="more options of gtp-opt, in one text")
    p.add_argument("--run-options", default="", help="more options of gtp-run, in one text")
    p.add_argument("--peer-python", default="python3", help="a Python with PyTorch (python3)")
    p.add_argument("--revision", help="of this tree, where git does not know it")
    return p.parse_args()


def main():
    options = parse()
    if not options.make_plans and "ours" not in options.skip and not (options.bin / "gtp-run").exists():
        fail(f"{options.bin}: there is no gtp-run")
    if "peer" not in options.skip and not options.make_plans and not shutil.which(options.peer_python):
        fail(f"--peer-python={options.peer_python}: there is no such program; --skip=peer measures gtp-run alone")
    needs_opt = options.make_plans or ("ours" not in options.skip and not options.plans)
    if needs_opt and not (options.bin / "gtp-opt").exists():
        fail(f"{options.bin}: there is no gtp-opt to make plans with; make them on a machine that has it "
             "(bench/run.sh --make-plans=DIR), and give --plans=DIR here")
    if options.make_plans:
        options.out = options.make_plans
        bench = Bench(options)
        made = [bench.compile(s, a, options.make_plans) for a in options.attention for s in options.seq]
        print("\n".join(str(plan) for plan in made if plan))
        sys.exit(0 if any(made) else 1)
    Bench(options).all()


if __name__ == "__main__":
    main()
