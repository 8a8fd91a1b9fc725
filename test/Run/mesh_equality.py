#!/usr/bin/env python3
"""Every mesh against one rank: gradients of the first step (SGD, no clipping), and
the losses of 20 AdamW steps; odd sizes, microbatches, masked labels."""
import array
import random

import gtp
from philox import sample_offsets

MESHES = [(1, 2), (1, 3), (1, 4), (1, 5), (2, 2), (3, 2), (2, 3), (4, 1)]
MICROBATCHES = [1, 2, 3]
BATCH, SEQUENCE, VOCABULARY, SEED = 360, 8, 257, 5
BASE = dict(vocab_size=VOCABULARY, hidden_size=77, intermediate_size=113, num_hidden_layers=2,
            num_attention_heads=7, num_key_value_heads=1, head_dim=4, max_position_embeddings=64,
            rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.1, hidden_act="silu")
MODELS = {
    "llama": dict(BASE, model_type="llama", tie_word_embeddings=False),
    "llama-tied": dict(BASE, model_type="llama", tie_word_embeddings=True),
    "qwen3": dict(BASE, model_type="qwen3", tie_word_embeddings=False),
}
# One model of each further family, on fewer meshes unless --all is given: what differs from
# llama is in the ops, which unit tests cover, not in how weights are cut.
SMALL = dict(vocab_size=VOCABULARY, hidden_size=70, intermediate_size=113, num_hidden_layers=2,
             num_attention_heads=7, max_position_embeddings=64, rms_norm_eps=1e-5,
             initializer_range=0.1)
FAMILIES = {
    "gemma2": dict(SMALL, model_type="gemma2", num_key_value_heads=1, head_dim=10,
                   sliding_window=3, query_pre_attn_scalar=10),
    "gpt2": dict(model_type="gpt2", vocab_size=VOCABULARY, n_embd=70, n_head=7, n_layer=2,
                 n_positions=11, n_inner=113, initializer_range=0.1, resid_pdrop=0.0,
                 embd_pdrop=0.0, attn_pdrop=0.0),
    "gpt_neox": dict(SMALL, model_type="gpt_neox", rotary_pct=0.25),
    "mistral": dict(SMALL, model_type="mistral", num_key_value_heads=1, sliding_window=3),
    "olmo2": dict(SMALL, model_type="olmo2"),
    "phi3": dict(SMALL, model_type="phi3", num_key_value_heads=7, sliding_window=4),
    "qwen2": dict(SMALL, model_type="qwen2", num_key_value_heads=1, tie_word_embeddings=True),
}
# What is decided for some weights: another model's config, and the options.
VARIANTS = {
    "llama-tied, embedding frozen": ("llama-tied", ["--freeze=embed_tokens"]),
    "llama, only norms trained": ("llama", ["--freeze=proj|embed_tokens|lm_head"]),
    "qwen3, only layer 1 trained": ("qwen3", ["--freeze=embed|lm_head|layers\\.0|^model\\.norm"]),
    "qwen3, k and up frozen": ("qwen3", ["--freeze=k_proj|up_proj"]),
    "llama, head and down whole": ("llama", ["--replicate=lm_head|down_proj"]),
}
FAMILY_MESHES = [(1, 3), (2, 4)]
FAMILY_MICROBATCHES = [3]
# Its mean is another one, over what ranks and microbatches have of whole sequences.
LOSSES = ["llama-tied/sequence-mean"]
LOSS_MESHES = [(1, 3), (2, 1), (2, 2)]
LOSS_MICROBATCHES = [1, 3]
TOKENS = 20000


class Data:
    """Tokens with structure, so that losses fall, and label files with masks."""

    def __init__(self, folder):
        self.folder = folder
        rng = random.Random(1)
        self.tokens, state = array.array("H"), 0
        for _ in range(TOKENS):
            state = (state * 5 + rng.randrange(9)) % VOCABULARY
            self.tokens.append(state)
        self.offsets = sample_offsets(SEED, step=1, samples=BATCH, choices=TOKENS - SEQUENCE)
        self.path = folder / "tokens.bin"
        self.path.write_bytes(self.tokens.tobytes())

    def labels(self, samples):
        """A label file without the labels of these samples of step 1."""
        path = self.folder / f"labels-{len(samples)}-{samples[-1]}.bin"
        if not path.exists():
            values = array.array("i", self.tokens)
            for sample in samples:
                for position in range(SEQUENCE):
                    values[self.offsets[sample] + position + 1] = -100
            path.write_bytes(values.tobytes())
        return path

    @staticmethod
    def samples_of_rank_0(ranks, microbatches):
        each = BATCH // microbatches
        return [j * each + i for j in range(microbatches) for i in range(each // ranks)]


class Grid:
    def __init__(self, tools):
        self.tools = tools
        self.data = Data(tools.scratch)
        self.reference = {}

    def measure(self, model, dp, degree, microbatches, labels, optimizer, steps):
        tools = self.tools
        model, _, loss = model.partition("/")
        base, decided = VARIANTS.get(model, (model, []))
        plan = tools.compile(tools.config(base, (MODELS | FAMILIES)[base]), f"--mesh=dp={dp},gtp={degree}", f"--seq={SEQUENCE}",
                             f"--micro-batch={BATCH // (dp * degree * microbatches)}",
                             f"--global-batch={BATCH}", f"--optimizer={optimizer}",
                             f"--loss={loss or 'token-mean'}", *decided)
        grads = tools.scratch / "grads.safetensors"
        options = [f"--data={self.data.path}", "--token-bits=16", f"--steps={steps}",
                   f"--seed={SEED}", "--lr=1e-3", f"--dump-grads={grads}"]
        if labels:
            options.append(f"--labels={labels}")
        metrics = tools.run(plan, *options)
        return gtp.read_safetensors(grads), metrics

    def one_rank(self, *case):
        if case not in self.reference:
            model, labels, optimizer, steps = case
            self.reference[case] = self.measure(model, 1, 1, 1, labels, optimizer, steps)
        return self.reference[case]

    def gradients(self, model, dp, degree, microbatches, labels):
        expected, reference = self.one_rank(model, labels, "sgd", 1)
        found, metrics = self.measure(model, dp, degree, microbatches, labels, "sgd", 1)
        if abs(metrics[0]["grad_norm"] / reference[0]["grad_norm"] - 1) > 2e-5:
            raise gtp.Failed(f"norm {metrics[0]['grad_norm']}, expected {reference[0]['grad_norm']}")
        worst, name = gtp.compare_tensors(found, expected, 2e-5)
        return f"worst {worst:.1e} {name}"

    def all_masked(self, model, dp, degree, microbatches):
        labels = self.data.labels(range(BATCH))
        found, metrics = self.measure(model, dp, degree, microbatches, labels, "sgd", 1)
        for name, (_, values) in found.items():
            if any(v != 0.0 for v in values):
                raise gtp.Failed(f"{name}: not exactly zero with every label masked")
        if metrics[0]["loss"] != 0.0 or metrics[0]["grad_norm"] != 0.0:
            raise gtp.Failed(f"loss {metrics[0]['loss']}, norm {metrics[0]['grad_norm']}, expected 0")
        return "exact zeros"

    def losses(self, model, dp, degree, microbatches):
        _, reference = self.one_rank(model, None, "adamw", 20)
        _, metrics = self.measure(model, dp, degree, microbatches, None, "adamw", 20)
        pairs = [(a["loss"], b["loss"]) for a, b in zip(metrics, reference)]
        if len(pairs) != 20:
            raise gtp.Failed(f"{len(pairs)} steps, expected 20")
        worst = max(abs(a / b - 1) for a, b in pairs)
        if not worst <= 1e-4:
            raise gtp.Failed(f"losses off by {worst:.2e}, at most 1e-4 allowed")
        return f"loss {pairs[0][0]:.4f} -> {pairs[-1][0]:.4f}, worst {worst:.1e}"


def body(tools, report, arguments):
    grid = Grid(tools)
    cases = [(model, MESHES, MICROBATCHES) for model in MODELS]
    cases += [(model, FAMILY_MESHES, FAMILY_MICROBATCHES) for model in [*FAMILIES, *VARIANTS]]
    cases += [(model, LOSS_MESHES, LOSS_MICROBATCHES) for model in LOSSES]
    if arguments.all:
        cases = [(model, MESHES, MICROBATCHES) for model, _, _ in cases]
    if arguments.models:
        cases = [case for case in cases if case[0] in arguments.models.split(",")]
    for model, meshes, counts in cases:
        for dp, degree in meshes:
            for microbatches in counts:
                mesh = (model, dp, degree, microbatches)
                name = f"{model} dp={dp} gtp={degree} microbatches={microbatches}"
                masked = grid.data.labels(Data.samples_of_rank_0(dp * degree, microbatches))
                report.case(f"{name} gradients", lambda: grid.gradients(*mesh, None))
                report.case(f"{name} rank 0 masked", lambda: grid.gradients(*mesh, masked))
                report.case(f"{name} all masked", lambda: grid.all_masked(*mesh))
                report.case(f"{name} 20 losses", lambda: grid.losses(*mesh))


def options(parser):
    parser.add_argument("--all", action="store_true", help="every model on every mesh")
    parser.add_argument("--models", help="only these, with commas between them")


if __name__ == "__main__":
    gtp.main("Every mesh against one rank, float32", body, options)
