#!/usr/bin/env python3
"""Fused kernels change no bit: each family with and without them, in float32 and in bf16, on
the host backend; losses, weights and held-out losses. Only a product with a bias rounds once
where two kernels round twice, so that with bf16 the losses are close."""
import gtp
from gtp import Failed
from mesh_equality import BASE, FAMILIES, Data

SEQUENCE, BATCH = 8, 8
MODELS = {
    "llama": dict(BASE, model_type="llama", tie_word_embeddings=False),
    "qwen3": dict(BASE, model_type="qwen3", tie_word_embeddings=True),
    **FAMILIES,
}
# Models with products that take their biases: not those whose products were joined into one,
# of which each piece has a bias of its own.
BIASED = ("gpt2", "gpt_neox")
CLOSE = 1e-3
DTYPES = {
    "f32": ("--dtype=f32",),
    "bf16": ("--dtype=bf16", "--grad-dtype=bf16", "--state-dtype=split"),
}


class Suite:
    def __init__(self, tools):
        self.tools = tools
        self.data = Data(tools.scratch)

    def plan(self, model, mesh, *options):
        return self.tools.compile(self.tools.config(model, MODELS[model]), f"--mesh={mesh}",
                                  f"--seq={SEQUENCE}",
                                  f"--micro-batch={BATCH // gtp.ranks(mesh) // 2}",
                                  f"--global-batch={BATCH}", "--clip-norm=1", *options, f32=False)

    def train(self, plan):
        dump = self.tools.scratch / "dump.safetensors"
        metrics = self.tools.run(plan, f"--data={self.data.path}", "--token-bits=16", "--steps=3",
                                 f"--eval-data={self.data.path}", "--eval-every=1",
                                 "--eval-steps=1", "--seed=5", "--lr=2e-3", "--weight-decay=0.1",
                                 f"--dump-weights={dump}")
        numbers = [{key: line[key] for key in ("loss", "grad_norm", "eval_loss") if key in line}
                   for line in metrics]
        return numbers, dump.read_bytes()

    def same(self, model, mesh, options):
        fused = self.plan(model, mesh, *options)
        apart = self.plan(model, mesh, *options, "--no-fuse")
        if fused.read_bytes() == apart.read_bytes():
            raise Failed("the plans are equal: nothing was fused")
        biased = b"linear_bias" in fused.read_bytes()
        if biased != (model in BIASED) or b"linear_bias" in apart.read_bytes():
            raise Failed(f"linear_bias in the fused plan: {biased}, expected {model in BIASED}, "
                         "and in none with --no-fuse")
        found, expected = self.train(fused), self.train(apart)
        if biased and "--dtype=bf16" in options:
            pairs = [(line[key], other[key]) for line, other in zip(found[0], expected[0])
                     for key in ("loss", "eval_loss")]
            worst = max(abs(one - two) / two for one, two in pairs)
            if worst > CLOSE:
                raise Failed(f"losses differ by {worst:.1e}, expected up to {CLOSE:.0e}: {pairs}")
            return f"losses within {worst:.1e}"
        if found[0] != expected[0]:
            raise Failed(f"{found[0]}, without fusion {expected[0]}")
        if found[1] != expected[1]:
            raise Failed("weights differ")
        return f"loss {found[0][0]['loss']:.6f} -> {found[0][-1]['loss']:.6f}"


def body(tools, report, arguments):
    suite = Suite(tools)
    for model in MODELS:
        for dtype, options in DTYPES.items():
            report.case(f"{model} gtp=2 {dtype}", lambda: suite.same(model, "gtp=2", options))
    report.case("llama dp=2,gtp=2 mean over sequences",
                lambda: suite.same("llama", "dp=2,gtp=2", ("--dtype=f32", "--loss=sequence-mean")))
    report.case("gpt2 gtp=1 frozen norms",
                lambda: suite.same("gpt2", "gtp=1", ("--dtype=f32", "--freeze=ln_")))


if __name__ == "__main__":
    gtp.main("Fused kernels beside their parts", body)
