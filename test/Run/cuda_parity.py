#!/usr/bin/env python3
"""The cuda backend against PyTorch, the host backend and itself; needs a GPU.

Without gtp-opt, --plans is a folder of plans that --make-plans has made elsewhere. With
--memcheck the same plans run under compute-sanitizer instead. Products take the library's first
algorithms: to measure them takes a tiny model far longer than its steps, and longer still beside
others on the same GPU. --measure-algorithms runs bf16-all with measured ones.
"""
import json
import pathlib
import re
import subprocess
import sys

import gtp

BATCH = 12
STEPS = 20
MESHES = {1: ["gtp=1"], 2: ["gtp=2", "dp=2"]}
# What is bf16 beside weights and activations: nothing; what is sent; all of it. cuDNN's
# attention needs the scratch that plans for GPUs have.
NARROW = {
    "bf16": ["--dtype=bf16"],
    "bf16-sent": ["--dtype=bf16", "--reduce-dtype=bf16", "--loss=sequence-mean"],
    "bf16-split": ["--dtype=bf16", "--grad-dtype=bf16", "--state-dtype=split"],
    "bf16-all": ["--dtype=bf16", "--grad-dtype=bf16", "--state-dtype=bf16"],
}


def plan_options(mesh, gpus):
    # Two microbatches, so that gradients accumulate.
    return [f"--mesh={mesh}", "--seq=8", f"--micro-batch={BATCH // gpus // 2}",
            f"--global-batch={BATCH}", "--clip-norm=1"]


def plan_name(model, mesh, name):
    return f"{model.name}-{mesh.replace('=', '').replace(',', '-')}-{name}.gtpplan"


def on_cuda(tools, plan, *options):
    return tools.run(plan, "--tuning-cache=off", *options, backend="cuda")


def first_step(tools, model, plan):
    """Loss and every gradient of the first step against PyTorch."""
    grads = tools.scratch / "grads.safetensors"
    metrics = on_cuda(tools, plan, *gtp.reference_data(model), "--steps=1", f"--dump-grads={grads}")
    return gtp.compare_with_torch(metrics[0], grads, model / "reference.safetensors")[0]


def losses(metrics):
    return [(line["loss"], line["grad_norm"]) for line in metrics]


def against_host(tools, model, plan, limit=1e-4, run=on_cuda):
    """Losses of 20 steps; then the same run again and without graphs, to the bit."""
    def train(run, *options):
        weights = tools.scratch / "weights.safetensors"
        metrics = run(tools, plan, *gtp.reference_data(model), f"--steps={STEPS}", "--lr=3e-3",
                      f"--dump-weights={weights}", *options)
        return metrics, weights.read_bytes()

    host, _ = train(gtp.Tools.run)
    cuda, weights = train(run)
    worst = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(cuda, host))
    if len(cuda) != STEPS or worst > limit:
        raise gtp.Failed(f"losses differ by {worst:.2e}, at most {limit:g} allowed")
    for options in [[], ["--eager"]]:
        again, others = train(run, *options)
        if losses(again) != losses(cuda) or others != weights:
            raise gtp.Failed(f"a run with {options or 'the same options'} gave other bits")
    return f"{host[0]['loss']:.4f} to {host[-1]['loss']:.4f}, worst difference {worst:.1e}"


def timed(tools, model, plan):
    """Steps with timed operations are the same steps, and those without collectives are marked."""
    options = [plan, *gtp.reference_data(model), "--lr=3e-3"]
    profile, trace = tools.scratch / "profile.json", tools.scratch / "trace.json"
    plain = on_cuda(tools, *options, "--steps=12")
    times = on_cuda(tools, *options, "--steps=12", f"--profile={profile}", f"--trace={trace}")
    if losses(times) != losses(plain):
        raise gtp.Failed("a run with --profile gave other bits")
    measured = json.loads(profile.read_text())["measured"]
    calls = measured["kernels"] + measured["collectives"]
    if any(entry[key] <= 0 for entry in calls for key in ("alone_ns", "beside_ns")) or not calls:
        raise gtp.Failed(f"an operation took no time: {calls}")
    json.loads(trace.read_text())
    alone = on_cuda(tools, *options, "--steps=12", "--without-collectives=8")
    marked = [line["step"] for line in alone if line.get("without_collectives")]
    if losses(alone)[:8] != losses(plain)[:8] or marked not in ([], [9, 10, 11, 12]):
        raise gtp.Failed(f"--without-collectives=8 changed steps before, or marked {marked}")
    return f"{len(calls)} classes, step {measured['step']['step_ns'] / 1e6:.2f} ms"


def under_memcheck(sanitizer, gpus):
    """A check that steps before a captured graph and in it touch only memory that is theirs."""
    # Calls that fail count on one GPU. On several, NCCL too asks the driver for what it may not
    # have; a failing call of the program itself ends it with an error of its own.
    calls = "explicit" if gpus == 1 else "no"

    def memcheck(tools, model, plan):
        done = subprocess.run([sanitizer, "--tool=memcheck", "--target-processes=all",
                               f"--report-api-errors={calls}", "--error-exitcode=9", tools.bin / "gtp-run", plan,
                               "--backend=cuda", "--tuning-cache=off", *gtp.reference_data(model), "--steps=5"],
                              capture_output=True, text=True, timeout=300)
        summaries = re.findall(r"ERROR SUMMARY: (\d+) error", done.stdout)
        if done.returncode or not summaries or any(count != "0" for count in summaries):
            found = re.findall(r"^========= (?! ).*", done.stdout, re.MULTILINE)
            raise gtp.Failed(f"exit {done.returncode}\n" + "\n".join(found[:30]) + f"\n{done.stderr[-1000:]}")
        return "0 errors"

    return memcheck


def narrow_against_host(tools, model, plan):
    """bf16, whose roundings go either way where float32 sums differ in the last place."""
    return against_host(tools, model, plan, 2e-2)


def measured_algorithms(tools, model, plan):
    """The same with a tuning cache: what the first run measures, the others take from there."""
    cache = tools.scratch / "tuning.json"
    cache.unlink(missing_ok=True)
    seen = []

    def run(tools, plan, *options):
        metrics = tools.run(plan, f"--tuning-cache={cache}", *options, backend="cuda")
        seen.append(cache.read_text())
        return metrics

    text = against_host(tools, model, plan, 2e-2, run)
    count = len(json.loads(seen[0])["products"])
    if not count or len(set(seen)) != 1:
        raise gtp.Failed(f"the first run measured {count} products, and later ones others again")
    return f"{text}, {count} products"


def cases(gpus):
    """Mesh, name, check and what gtp-opt is told of types and optimizer."""
    for mesh in MESHES[gpus]:
        yield mesh, "sgd", first_step, ["--optimizer=sgd", "--dtype=f32"]
        yield mesh, "adamw", against_host, ["--optimizer=adamw", "--dtype=f32"]
        if gpus > 1: # copy engines, and the library's sums
            yield mesh, "windows", against_host, ["--target=h200", "--dtype=f32"]
        yield mesh, "adamw", timed, ["--optimizer=adamw", "--dtype=f32"]
        for name, options in NARROW.items():
            yield mesh, name, narrow_against_host, ["--target=h200", "--optimizer=adamw", *options]


def chosen(option, names):
    """Those of an option's text, which must be among the names; all of them where it is not given."""
    wanted = option.split(",") if option else names
    if unknown := set(wanted) - set(names):
        sys.exit(f"cuda_parity.py: error: found {', '.join(sorted(unknown))}, "
                 f"expected one or more of {','.join(names)}")
    return wanted


def chosen_cases(arguments):
    """The cases that the options leave, with another check where they ask for one."""
    everything = list(cases(arguments.gpus))
    meshes = chosen(arguments.meshes, MESHES[arguments.gpus])
    names = chosen(arguments.cases, list(dict.fromkeys(name for _, name, _, _ in everything)))
    for mesh, name, check, options in everything:
        if mesh not in meshes or name not in names:
            continue
        if arguments.memcheck: # a plan with float32 and one where everything is bf16
            if check is timed or name not in ("windows" if arguments.gpus > 1 else "adamw", "bf16-all"):
                continue
            check = under_memcheck(arguments.memcheck, arguments.gpus)
        elif arguments.measure_algorithms:
            if name != "bf16-all":
                continue
            check = measured_algorithms
        yield mesh, name, check, options


def add_options(parser):
    parser.add_argument("--gpus", type=int, default=1, choices=sorted(MESHES))
    parser.add_argument("--plans", type=pathlib.Path, help="folder of plans made before")
    parser.add_argument("--models", help="names of Inputs/torch with commas between (all)")
    parser.add_argument("--meshes", help="the same of meshes (gtp=2,dp=2)")
    parser.add_argument("--cases", help="the same of what is run (sgd, adamw, windows, " + ", ".join(NARROW) + ")")
    parser.add_argument("--memcheck", metavar="SANITIZER", help="compute-sanitizer, to run the plans under")
    parser.add_argument("--measure-algorithms", action="store_true", help="run only what measures them")
    parser.add_argument("--make-plans", action="store_true", help="make --plans and stop")


def body(tools, report, arguments):
    models = {model.name: model for model in gtp.torch_models()}
    for model in (models[name] for name in chosen(arguments.models, list(models))):
        for mesh, name, check, options in chosen_cases(arguments):
            file = plan_name(model, mesh, name)

            def plan():
                if arguments.plans and not arguments.make_plans:
                    return arguments.plans / file
                return tools.compile(model / "config.json",
                                     *plan_options(mesh, arguments.gpus), *options,
                                     *gtp.reference_options(model), f32=False)

            def case():
                if not arguments.make_plans:
                    return check(tools, model, plan())
                arguments.plans.mkdir(parents=True, exist_ok=True)
                (arguments.plans / file).write_bytes(plan().read_bytes())
                return None

            report.case(f"{model.name} {mesh} {name} {check.__name__}", case)


if __name__ == "__main__":
    gtp.main("The cuda backend, float32 and bf16", body, add_options)
