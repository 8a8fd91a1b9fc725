#!/usr/bin/env python3
"""The loss of held-out text (gtp-run --eval-data): against PyTorch, on every mesh, and
beside a training that must not notice it."""
import array
import json
import random

import gtp
from gtp import Failed
from mesh_equality import FAMILIES, MESHES, MODELS, VOCABULARY

BATCH, SEQUENCE = 12, 8


def torch_parity(tools, model, mesh):
    plan = tools.compile(model / "config.json", f"--mesh={mesh}", f"--seq={SEQUENCE}",
                         f"--micro-batch={BATCH // gtp.ranks(mesh) // 2}", f"--global-batch={BATCH}",
                         *gtp.reference_options(model))
    line, = tools.run(plan, f"--eval-data={model / 'tokens.bin'}", "--token-bits=16",
                      f"--eval-labels={model / 'labels.bin'}",
                      f"--weights={model / 'weights.safetensors'}", "--steps=0")
    expected = json.loads((model / "eval.json").read_text())
    gap = abs(line["eval_loss"] / expected["loss"] - 1)
    if line["step"] != 0 or line["eval_count"] != expected["labels"] or not gap < 1e-5:
        raise Failed(f"{line}, expected {expected}")
    return f"{line['eval_loss']:.6f}, off by {gap:.0e}"


class Text:
    """Ids, of which held-out ones do not fill their last batch, nor its last sample."""

    def __init__(self, folder):
        rng = random.Random(7)
        self.train, self.held_out = folder / "train.bin", folder / "held-out.bin"
        for path, count in ((self.train, 4000), (self.held_out, 1003)):
            path.write_bytes(array.array("H", (rng.randrange(VOCABULARY)
                                               for _ in range(count))).tobytes())


def compile_for(tools, config, dp, degree, microbatches, *options):
    return tools.compile(config, f"--mesh=dp={dp},gtp={degree}", f"--seq={SEQUENCE}",
                         f"--micro-batch={60 // dp // degree // microbatches}", "--global-batch=60",
                         *options)


def mesh_cases(tools, report, text, name, config, meshes):
    """Trained for two steps, so that weights, too, were updated on the mesh."""
    options = [f"--data={text.train}", f"--eval-data={text.held_out}", "--token-bits=16",
               "--steps=2", "--lr=1e-2", "--eval-every=1", "--seed=3"]

    def losses(dp, degree, microbatches):
        lines = tools.run(compile_for(tools, config, dp, degree, microbatches), *options)
        if [line["eval_count"] for line in lines] != [1002, 1002]:
            raise Failed(f"counted {[line['eval_count'] for line in lines]}, expected 1002")
        return [line["eval_loss"] for line in lines]

    expected = losses(1, 1, 1)

    def case(dp, degree, microbatches):
        found = losses(dp, degree, microbatches)
        gap = max(abs(a / b - 1) for a, b in zip(found, expected))
        if not gap <= 1e-5 or found[0] == found[1]:
            raise Failed(f"{found}, expected {expected}")
        return f"{found[0]:.5f}, {found[1]:.5f}, off by {gap:.0e}"

    for dp, degree in meshes:
        for microbatches in (1, 3):
            if 60 % (dp * degree * microbatches) == 0:
                report.case(f"{name} dp={dp} gtp={degree}, {microbatches} microbatches",
                            lambda: case(dp, degree, microbatches))


def unnoticed(tools, report, text, config):
    plan = compile_for(tools, config, 2, 2, 3, "--clip-norm=1")
    weights = [tools.scratch / f"{name}.safetensors" for name in ("without", "with")]
    options = [f"--data={text.train}", "--token-bits=16", "--steps=5", "--lr=1e-2", "--seed=3"]
    evaluate = [f"--eval-data={text.held_out}", "--eval-every=2"]

    def train(*more):
        return tools.run(plan, *options, *more)

    without = train(f"--dump-weights={weights[0]}")
    beside = train(f"--dump-weights={weights[1]}", *evaluate)

    def same_bits():
        for key in ("loss", "grad_norm"):
            if [line[key] for line in without] != [line[key] for line in beside]:
                raise Failed(f"{key} differs")
        if weights[0].read_bytes() != weights[1].read_bytes():
            raise Failed("weights differ")
        steps = [line["step"] for line in beside if "eval_loss" in line]
        if steps != [2, 4, 5] or any("eval_loss" in line for line in without):
            raise Failed(f"evaluated behind {steps}, expected 2, 4 and 5")

    def trained_weights():
        line, = tools.run(plan, f"--weights={weights[0]}", "--steps=0", "--token-bits=16",
                          f"--eval-data={text.held_out}")
        if line["eval_loss"] != beside[-1]["eval_loss"]:
            raise Failed(f"{line['eval_loss']}, behind the last step {beside[-1]['eval_loss']}")

    def jitter(seed):
        found = train(*evaluate, f"--host-jitter={seed}")
        if any(a.get("eval_loss") != b.get("eval_loss") for a, b in zip(found, beside)):
            raise Failed("other losses")

    def some(batches):
        # 126 samples, 60 a batch; --eval-steps takes the first ones.
        line, = tools.run(plan, f"--weights={weights[0]}", "--steps=0", "--token-bits=16",
                          f"--eval-data={text.held_out}", f"--eval-steps={batches}")
        expected = min(1002, batches * 60 * SEQUENCE)
        if line["eval_count"] != expected:
            raise Failed(f"counted {line['eval_count']}, expected {expected}")
        return line["eval_loss"]

    def mean_of_parts():
        """Windows one behind the other: a text is its parts that start at their edges."""
        ids = text.held_out.read_bytes()
        cut = 2 * 7 * SEQUENCE
        total = 0.0
        for name, part, count in (("head", ids[:cut + 2], 56), ("tail", ids[cut:], 1002 - 56)):
            path = tools.scratch / f"{name}.bin"
            path.write_bytes(part)
            line, = tools.run(plan, f"--weights={weights[0]}", "--steps=0", "--token-bits=16",
                              f"--eval-data={path}")
            if line["eval_count"] != count:
                raise Failed(f"{name}: counted {line['eval_count']}, expected {count}")
            total += line["eval_loss"] * count
        gap = abs(total / 1002 / beside[-1]["eval_loss"] - 1)
        if not gap < 1e-6:
            raise Failed(f"off by {gap:.1e}")
        return f"off by {gap:.0e}"

    report.case("training's bits with and without", same_bits)
    report.case("--steps=0 of the trained weights", trained_weights)
    for seed in (1, 2):
        report.case(f"jitter seed {seed}: same losses", lambda: jitter(seed))
    for batches in (1, 2, 3, 4):
        report.case(f"--eval-steps={batches}", lambda: some(batches))
    report.case("the weighted mean of two parts", mean_of_parts)


def sequence_mean(tools, report, model):
    """--loss=sequence-mean: the mean of the losses of samples alone, of those that have a counted
    label. The last is shorter, and one has none."""
    tokens, labels = array.array("H"), array.array("i")
    tokens.frombytes((model / "tokens.bin").read_bytes())
    labels.frombytes((model / "labels.bin").read_bytes())
    size, empty = 78, 2 * SEQUENCE + 1
    labels[empty:empty + SEQUENCE] = array.array("i", [-100] * SEQUENCE)

    def evaluate(plan, begin, end):
        data, own = tools.scratch / "sample.bin", tools.scratch / "sample-labels.bin"
        data.write_bytes(tokens[begin:end].tobytes())
        own.write_bytes(labels[begin:end].tobytes())
        line, = tools.run(plan, f"--eval-data={data}", "--token-bits=16", f"--eval-labels={own}",
                          f"--weights={model / 'weights.safetensors'}", "--steps=0")
        return line["eval_loss"], line["eval_count"]

    alone = tools.compile(model / "config.json", f"--seq={SEQUENCE}")
    samples = [evaluate(alone, begin, min(begin + SEQUENCE + 1, size))[0]
               for begin in range(0, size - 1, SEQUENCE) if begin != empty - 1]
    expected = sum(samples) / len(samples)
    labels_mean, _ = evaluate(alone, 0, size)

    def case(mesh):
        plan = tools.compile(model / "config.json", f"--mesh={mesh}", f"--seq={SEQUENCE}",
                             "--loss=sequence-mean")
        found, count = evaluate(plan, 0, size)
        gap = abs(found / expected - 1)
        if count != 9 or not gap < 1e-5 or abs(labels_mean / expected - 1) < 1e-4:
            raise Failed(f"{found} of {count}, expected {expected} of 9; over labels {labels_mean}")
        return f"{found:.6f}, off by {gap:.0e}; over labels {labels_mean:.6f}"

    for mesh in ("gtp=1", "dp=2,gtp=3"):
        report.case(f"{model.name} {mesh} sequence-mean", lambda: case(mesh))


def body(tools, report, arguments):
    for model in gtp.torch_models():
        for mesh in ("gtp=1", "gtp=3", "dp=2,gtp=3"):
            report.case(f"PyTorch: {model.name} {mesh}", lambda: torch_parity(tools, model, mesh))
    text = Text(tools.scratch)
    configs = {}
    for name, fields in {**MODELS, **FAMILIES}.items():
        configs[name] = tools.config(name, fields)
        mesh_cases(tools, report, text, name, configs[name],
                   MESHES if name == "llama-tied" else [(2, 3)])
    unnoticed(tools, report, text, configs["llama"])
    sequence_mean(tools, report, gtp.TORCH / "llama-untied")


if __name__ == "__main__":
    gtp.main("The loss of held-out text, float32", body)
