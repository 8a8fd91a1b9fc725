#!/usr/bin/env python3
"""Element types: bf16 beside float32, float32 masters in two halves beside whole ones,
bf16 states; on the host backend, for AdamW and SGD, on several meshes."""
import json

import gtp
from gtp import Failed
from mesh_equality import BASE, FAMILIES, Data

SEQUENCE, BATCH = 8, 24
MODELS = {
    "llama": dict(BASE, model_type="llama", tie_word_embeddings=True),
    "gpt2": FAMILIES["gpt2"],
    "gemma2": FAMILIES["gemma2"],
}
# Rows of every weight are a multiple of 256 bytes in 16 bits, so that buffers have no padding.
ROUND = dict(BASE, model_type="llama", tie_word_embeddings=False, vocab_size=256, hidden_size=128,
             intermediate_size=256, num_attention_heads=4, num_key_value_heads=1, head_dim=32)


class Suite:
    def __init__(self, tools):
        self.tools = tools
        self.data = Data(tools.scratch)
        self.results = {}

    def plan(self, model, mesh, *options):
        return self.tools.compile(self.tools.config(model, MODELS[model]), f"--mesh={mesh}",
                                  f"--seq={SEQUENCE}",
                                  f"--micro-batch={BATCH // gtp.ranks(mesh) // 2}",
                                  f"--global-batch={BATCH}", "--clip-norm=1", *options, f32=False)

    def train(self, model, mesh, options, steps, weights=None):
        """Losses, and the bytes of the weights dumped."""
        key = (model, mesh, options, steps, weights)
        if key not in self.results:
            dump = self.tools.scratch / "dump.safetensors"
            run = [f"--data={self.data.path}", "--token-bits=16", f"--steps={steps}", "--seed=5",
                   "--lr=2e-3", "--weight-decay=0.1", f"--dump-weights={dump}"]
            if weights:
                run.append(f"--weights={weights}")
            metrics = self.tools.run(self.plan(model, mesh, *options), *run)
            self.results[key] = [line["loss"] for line in metrics], dump.read_bytes()
        return self.results[key]

    def near(self, model, mesh, options, steps, limit):
        """Losses beside those of float32 on the same mesh."""
        found, _ = self.train(model, mesh, options, steps)
        expected, _ = self.train(model, mesh, ("--dtype=f32",), steps)
        worst = max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))
        if found == expected:
            raise Failed("the losses are those of float32 to the bit: nothing was rounded")
        if not worst <= limit:
            raise Failed(f"losses off by {worst:.2e}, at most {limit:g} allowed")
        return f"loss {found[0]:.4f} -> {found[-1]:.4f}, off by at most {worst:.1e}"

    def same(self, model, mesh, optimizer, weights=None):
        """Halves beside whole masters: all bits are the same."""
        options = ("--dtype=bf16", f"--optimizer={optimizer}")
        whole = self.train(model, mesh, (*options, "--state-dtype=f32"), 20, weights)
        split = self.train(model, mesh, (*options, "--state-dtype=split"), 20, weights)
        if whole[0] != split[0]:
            raise Failed(f"losses {split[0]}, expected {whole[0]}")
        if whole[1] != split[1]:
            raise Failed("weights differ")
        return f"loss {split[0][0]:.6f} -> {split[0][-1]:.6f}"

    def persistent_bytes(self, state, mesh):
        stats = self.tools.scratch / "stats.json"
        self.tools.call("gtp-opt", self.tools.config("round", ROUND), f"--mesh={mesh}", "--seq=8",
                        f"--state-dtype={state}", f"--stats={stats}", "--emit=plan", "-o",
                        self.tools.scratch / "round.gtpplan")
        found = json.loads(stats.read_text())
        return found["persistent_bytes"], found["parameters"]

    def memory(self):
        """Bytes a weight on one rank: bf16 weight, float32 master and moments are 14."""
        for state, expected in (("f32", 14), ("split", 12), ("bf16", 6)):
            found, parameters = self.persistent_bytes(state, "gtp=1")
            if found != expected * parameters:
                raise Failed(f"--state-dtype={state}: {found} persistent bytes, expected "
                             f"{expected} for each of {parameters} parameters")
        whole, _ = self.persistent_bytes("f32", "gtp=2")
        split, _ = self.persistent_bytes("split", "gtp=2")
        if not split < whole:
            raise Failed(f"gtp=2: {split} bytes split, {whole} whole")
        return "14, 12 and 6 bytes a weight"

    def repeats(self):
        options = ("--dtype=bf16", "--grad-dtype=bf16", "--state-dtype=bf16")
        first = self.train("llama", "dp=2,gtp=2", options, 5)
        self.results.clear()
        if self.train("llama", "dp=2,gtp=2", options, 5) != first:
            raise Failed("two runs differ")


def body(tools, report, arguments):
    suite = Suite(tools)
    for model in MODELS:
        report.case(f"{model} dp=2,gtp=2 bf16, 50 losses beside float32's",
                    lambda: suite.near(model, "dp=2,gtp=2", ("--dtype=bf16",), 50, 0.01))
    for name, options in {
        "bf16 gradients": ("--dtype=bf16", "--grad-dtype=bf16"),
        "bf16 on the wire": ("--dtype=bf16", "--reduce-dtype=bf16"),
        "float32 but the wire": ("--dtype=f32", "--reduce-dtype=bf16"),
        "float32 but gradients": ("--dtype=f32", "--grad-dtype=bf16"),
        "split masters": ("--dtype=bf16", "--state-dtype=split"),
    }.items():
        report.case(f"llama dp=2,gtp=2 {name}, 50 losses",
                    lambda: suite.near("llama", "dp=2,gtp=2", options, 50, 0.01))
    # Steps below half of a bf16's last bit are lost, so the loss falls more slowly.
    report.case("llama dp=2,gtp=2 bf16 states, 20 losses",
                lambda: suite.near("llama", "dp=2,gtp=2", ("--dtype=bf16", "--state-dtype=bf16"),
                                   20, 0.05))
    for model, mesh, optimizer in [("llama", "gtp=1", "adamw"), ("llama", "dp=2,gtp=2", "adamw"),
                                   ("llama", "gtp=3", "sgd"), ("gpt2", "dp=2,gtp=3", "adamw")]:
        report.case(f"{model} {mesh} {optimizer}, split masters to the bit",
                    lambda: suite.same(model, mesh, optimizer))
    weights = tools.scratch / "weights.safetensors"
    weights.write_bytes(suite.train("llama", "dp=2,gtp=2", ("--dtype=f32",), 50)[1])
    report.case("llama dp=2,gtp=2 from a checkpoint, split to the bit",
                lambda: suite.same("llama", "dp=2,gtp=2", "adamw", weights))
    report.case("persistent bytes by --state-dtype", suite.memory)
    report.case("bf16 throughout, twice the same bits", suite.repeats)


if __name__ == "__main__":
    gtp.main("Element types", body)
