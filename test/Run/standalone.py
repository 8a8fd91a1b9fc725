#!/usr/bin/env python3
"""Programs of gtp-opt --emit=cpp: examples/standalone builds them against the runtime; each
builds the plan of --emit=plan to the byte and trains to the bits of gtp-run.

On a machine with GPUs: --gtp=build/cuda --backend=cuda --mesh=gtp=2."""
import json
import os
import pathlib
import subprocess

import gtp
from mesh_equality import BASE, FAMILIES, MODELS

EXAMPLE = gtp.HERE.parents[1] / "examples/standalone"
OPTIONS = ["--seq=8", "--micro-batch=2", "--global-batch=16", "--clip-norm=1"]
PROGRAMS = {
    "llama": (MODELS["llama"], ["--dtype=f32"]),
    "llama_tied": (MODELS["llama-tied"], ["--dtype=f32", "--freeze=norm"]),
    "gpt2": (FAMILIES["gpt2"], ["--dtype=f32", "--optimizer=sgd"]),
    "gpt_neox": (FAMILIES["gpt_neox"], ["--dtype=f32", "--loss=sequence-mean",
                                        "--document-separator=9"]),
    "llama_h200": (MODELS["llama"], ["--target=h200", "--reduce-dtype=bf16"]),
    "llama_split": (MODELS["llama"], ["--state-dtype=split", "--prefetch-distance=1"]),
}
# A further layer is its rows in tables: of what it takes written out, at most this.
LAYER_SHARE = 0.2


def emit(tools, name, config, options, kind):
    source = tools.config(name, config)
    output = tools.scratch / f"{name}.{kind}"
    tools.call("gtp-opt", source, *options, f"--emit={kind}", "-o", output)
    return output


def build(tools, gtp_dir):
    """The example project, of all programs, against a build of gtp."""
    folder = tools.scratch / "build"
    files = ";".join(str(tools.scratch / f"{name}.cpp") for name in PROGRAMS)

    def step(*command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise gtp.Failed(f"{command}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        if "warning:" in done.stdout + done.stderr:
            raise gtp.Failed(f"warnings:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")

    def body():
        step("cmake", "-S", EXAMPLE, "-B", folder, f"-Dgtp_DIR={gtp_dir}",
             f"-DPROGRAMS={files}")
        step("cmake", "--build", folder, "--parallel", str(os.cpu_count()))

    return folder, body


def run(tools, program, options):
    """Lines of metrics and bytes of dumped weights."""
    metrics, weights = tools.scratch / "run.jsonl", tools.scratch / "run.safetensors"
    metrics.unlink(missing_ok=True)
    tools.call(program, *options, f"--metrics={metrics}", f"--dump-weights={weights}")
    timed = ("tokens_per_s", "step_ms", "wall_ms", "model_tflops")
    lines = [{key: value for key, value in json.loads(line).items() if key not in timed}
             for line in metrics.read_text().splitlines()]
    return lines, weights.read_bytes()


def body(tools, report, arguments):
    gtp_dir = pathlib.Path(arguments.gtp or tools.bin.parent).resolve()
    options = [f"--mesh={arguments.mesh}", *OPTIONS]
    data, held_out = tools.scratch / "data.bin", tools.scratch / "held_out.bin"
    data.write_bytes(bytes((i * i // 7 + i) % 251 for i in range(6000)))
    held_out.write_bytes(bytes((i * i // 3 + i) % 241 for i in range(500)))
    training = [f"--backend={arguments.backend}", f"--data={data}", f"--eval-data={held_out}",
                "--eval-every=2", "--steps=4"]

    def write(name, config, extra):
        first = emit(tools, name, config, [*options, *extra], "cpp").read_bytes()
        if emit(tools, name, config, [*options, *extra], "cpp").read_bytes() != first:
            raise gtp.Failed("two runs write different bytes")
        return f"{len(first)} bytes, twice"

    for name, (config, extra) in PROGRAMS.items():
        report.case(f"{name}: written", lambda: write(name, config, extra))
    folder, make = build(tools, gtp_dir)
    report.case("built by examples/standalone", make)

    def same(name, config, extra):
        plan = emit(tools, name, config, [*options, *extra], "plan")
        own = tools.scratch / "own.gtpplan"
        program = folder / name
        tools.call(program, f"--emit-plan={own}")
        if own.read_bytes() != plan.read_bytes():
            raise gtp.Failed("builds another plan than --emit=plan writes")
        expected, weights = run(tools, gtp_dir / "bin/gtp-run", [plan, *training])
        found, own_weights = run(tools, program, training)
        if found != expected:
            raise gtp.Failed(f"metrics {found}, expected {expected}")
        if own_weights != weights:
            raise gtp.Failed("weights differ")
        return f"{plan.stat().st_size} bytes of plan, loss {expected[-1]['loss']:.4f}"

    for name, (config, extra) in PROGRAMS.items():
        report.case(f"{name}: plan, losses and weights of gtp-run",
                    lambda: same(name, config, extra))

    def wrong_option():
        done = tools.call(folder / "llama", "some.gtpplan", check=False)
        if done.returncode != 1 or "unknown argument 'some.gtpplan'" not in done.stderr:
            raise gtp.Failed(f"exit {done.returncode}: {done.stderr}")

    report.case("a program takes no plan", wrong_option)

    def growth():
        def layer(kind):
            few, many = (len(emit(tools, f"layers{layers}",
                                  dict(BASE, model_type="llama", num_hidden_layers=layers),
                                  [*options, "--dtype=f32", "--target=h200"], kind).read_bytes())
                         for layers in (4, 32))
            return (many - few) / 28

        rows, text = layer("cpp"), layer("plan-text")
        if rows > text * LAYER_SHARE:
            raise gtp.Failed(f"{rows:.0f} bytes a layer, and {text:.0f} of --emit=plan-text")
        return f"{rows:.0f} bytes a layer, where --emit=plan-text has {text:.0f}"

    report.case("32 layers against 4", growth)


def add_options(parser):
    parser.add_argument("--gtp", help="build folder of gtp whose runtime programs link, and whose "
                                      "gtp-run they are compared with (that of --bin)")
    parser.add_argument("--backend", default="host")
    parser.add_argument("--mesh", default="dp=2,gtp=2")


if __name__ == "__main__":
    gtp.main("Standalone programs", body, add_options)
