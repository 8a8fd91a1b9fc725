#!/usr/bin/env python3
"""What is decided for single weights, and the switches that take away overlap: frozen
subsets against PyTorch, frozen weights unchanged and without state, and the same bits under
every switch and pin."""
import json
import re

import gtp

# Model, what is frozen. PyTorch's gradients of the others are the same with and without
# requires_grad.
FROZEN = {
    "tied embedding": ("llama-tied", r"embed_tokens"),
    "all but norms": ("llama-untied", r"proj|embed_tokens|lm_head"),
    "all but one layer": ("llama-untied", r"embed_tokens|lm_head|layers\.0|^model\.norm"),
    "all but the head": ("qwen2", r"layers|norm"),
    "one of q, k and v": ("qwen3", r"layers\.0\.self_attn\.k_proj|k_norm"),
    "biases and layer norms": ("gpt2", r"bias$|ln_"),
}
MESHES = ["gtp=1", "gtp=3", "dp=2,gtp=2"]
BATCH = 12
CONFIG = dict(model_type="qwen3", vocab_size=257, hidden_size=77, intermediate_size=113,
              num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1, head_dim=4,
              max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0,
              initializer_range=0.1, hidden_act="silu", tie_word_embeddings=False)
SWITCHES = {
    "--no-prefetch": ["--no-prefetch"],
    "--sync": ["--sync"],
    "--prefetch-distance=1": ["--prefetch-distance=1"],
    "--prefetch-distance=3": ["--prefetch-distance=3"],
    "--prefetch-distance=4294967295": ["--prefetch-distance=4294967295"],
}
PINS = {
    "one late": {"layers.1.mlp": {"prefetch": "off"}},
    "one early": {"layers.2.self_attn": {"prefetch": 4}},
    "one automatic": {"lm_head": {"prefetch": "auto"}},
    "some of each": {"self_attn.[qkv]_proj": {"prefetch": 2}, "gate|up": {"prefetch": "off"},
                     "down": {"prefetch": "auto"}, "lm_head": {"prefetch": 7}},
}


class Model:
    """A PyTorch reference with some weights frozen."""

    def __init__(self, tools, name, pattern):
        self.tools, self.pattern = tools, pattern
        self.folder = gtp.TORCH / name

    def frozen(self, name):
        return re.search(self.pattern, name) is not None

    def run(self, mesh, optimizer, *options):
        plan = self.tools.compile(self.folder / "config.json", f"--mesh={mesh}", "--seq=8",
                                  f"--micro-batch={BATCH // gtp.ranks(mesh)}", f"--global-batch={BATCH}",
                                  f"--optimizer={optimizer}", f"--freeze={self.pattern}")
        return self.tools.run(plan, *gtp.reference_data(self.folder), *options)

    def parity(self, mesh):
        grads = self.tools.scratch / "grads.safetensors"
        metrics = self.run(mesh, "sgd", "--steps=1", f"--dump-grads={grads}")
        reference = self.folder / "reference.safetensors"
        text, expected = gtp.compare_with_torch(metrics[0], grads, reference,
                                                lambda name: not self.frozen(name))
        tensors = len(gtp.read_safetensors(reference)) - 1 # and the loss
        if not 0 < len(expected) < tensors:
            raise gtp.Failed(f"{len(expected)} of {tensors} tensors are trained")
        norm = sum(gtp.norm(values) ** 2 for _, values in expected.values()) ** 0.5
        if abs(metrics[0]["grad_norm"] / norm - 1) > 1e-4:
            raise gtp.Failed(f"norm {metrics[0]['grad_norm']}, expected {norm} of what is trained")
        return f"{len(expected)} of {tensors} trained, {text}"

    def unchanged(self, mesh):
        dump = self.tools.scratch / "weights.safetensors"
        self.run(mesh, "adamw", "--steps=3", "--weight-decay=0.1", "--lr=1e-2",
                 f"--dump-weights={dump}")
        before = gtp.read_safetensors(self.folder / "weights.safetensors")
        after = gtp.read_safetensors(dump)
        if set(before) != set(after):
            raise gtp.Failed(f"tensors differ: {sorted(set(before) ^ set(after))}")
        for name in before:
            if (before[name] == after[name]) != self.frozen(name):
                raise gtp.Failed(f"{name} is {'frozen but' if self.frozen(name) else 'trained but not'}"
                                 " changed")
        return f"{sum(map(self.frozen, before))} of {len(before)} unchanged to the bit"


def persistent_bytes(tools, config, *options):
    stats = tools.scratch / "stats.json"
    tools.call("gtp-opt", config, "--seq=8", *options, "--emit=plan", f"--stats={stats}", "-o",
               tools.scratch / "stats.gtpplan")
    return json.loads(stats.read_text())["persistent_bytes"]


def memory(tools, config, dtype, states):
    """All state of a frozen embedding is gone, and nothing else."""
    options = ["--mesh=gtp=1", f"--dtype={dtype}"]
    trained = persistent_bytes(tools, config, *options)
    frozen = persistent_bytes(tools, config, *options, "--freeze=embed_tokens")
    aligned = -(-CONFIG["vocab_size"] * CONFIG["hidden_size"] * 4 // 256) * 256
    if trained - frozen != states * aligned:
        raise gtp.Failed(f"{trained} bytes trained, {frozen} frozen; expected {states * aligned} less")
    return f"{trained} -> {frozen} bytes"


class Bits:
    """Losses and weights of a few steps, of which no switch may change a bit."""

    def __init__(self, tools, config):
        self.tools, self.config = tools, config
        data = tools.scratch / "text.bin"
        data.write_bytes(bytes((i * i * 7 + i // 3) % 251 for i in range(5000)))
        self.data = data
        self.expected = {}

    def measure(self, mesh, options):
        dump = self.tools.scratch / "bits.safetensors"
        plan = self.tools.compile(self.config, f"--mesh={mesh}", "--seq=8", "--micro-batch=1",
                                  f"--global-batch={2 * gtp.ranks(mesh)}", *options)
        metrics = self.tools.run(plan, f"--data={self.data}", "--steps=3", "--lr=1e-2",
                                 f"--dump-weights={dump}")
        return [(m["loss"], m["grad_norm"]) for m in metrics], dump.read_bytes()

    def same(self, mesh, options):
        if mesh not in self.expected:
            self.expected[mesh] = self.measure(mesh, [])
        expected, found = self.expected[mesh], self.measure(mesh, options)
        if len(found[0]) != 3 or found[0] != expected[0]:
            raise gtp.Failed(f"losses and norms {found[0]}, expected {expected[0]}")
        if found[1] != expected[1]:
            raise gtp.Failed("the losses agree, the weights do not")
        return f"loss {found[0][0][0]:.4f} -> {found[0][2][0]:.4f}"


def body(tools, report, arguments):
    for name, (model, pattern) in FROZEN.items():
        frozen = Model(tools, model, pattern)
        for mesh in MESHES:
            report.case(f"{model} {mesh}, {name}", lambda: frozen.parity(mesh))
        report.case(f"{model} {mesh}, {name}: weights", lambda: frozen.unchanged(mesh))

    config = tools.config("config", CONFIG)
    report.case("no moments of a frozen weight in f32", lambda: memory(tools, config, "f32", 2))
    report.case("no moments, no master in bf16", lambda: memory(tools, config, "bf16", 3))

    bits = Bits(tools, config)
    for mesh in MESHES[1:]:
        for name, options in SWITCHES.items():
            report.case(f"{mesh} {name}", lambda: bits.same(mesh, options))
    for name, pins in PINS.items():
        path = tools.config(name, pins)
        for switch in ([], ["--no-prefetch"], ["--sync"], ["--prefetch-distance=2"]):
            report.case(f"gtp=3 pins: {name} {''.join(switch)}",
                        lambda: bits.same("gtp=3", [f"--overrides={path}", *switch]))


if __name__ == "__main__":
    gtp.main("Single weights and bisecting switches", body)
