#!/usr/bin/env python3
"""Packed documents: with --document-separator, loss and gradients of a step are the sum,
weighted by counted labels, of those of each document run alone, in a row padded with
labels that are not counted, by a plan that knows nothing of documents."""
import array
import random

import gtp
from philox import sample_offsets

# With how many microbatches.
MESHES = {"gtp=1": 1, "dp=2,gtp=2": 1, "gtp=3": 2}
BATCH, SEQUENCE, VOCABULARY, SEPARATOR, SEED, TOKENS = 12, 13, 61, 7, 4, 300
TOLERANCE = 2e-5
SMALL = dict(vocab_size=VOCABULARY, hidden_size=18, intermediate_size=22, num_hidden_layers=2,
             num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=32,
             rms_norm_eps=1e-5, initializer_range=0.2)
MODELS = {
    "llama": dict(SMALL, model_type="llama"),
    "gpt2": dict(model_type="gpt2", vocab_size=VOCABULARY, n_embd=18, n_head=3, n_layer=2,
                 n_positions=15, n_inner=22, initializer_range=0.2, resid_pdrop=0.0,
                 embd_pdrop=0.0, attn_pdrop=0.0),
    "gemma2": dict(SMALL, model_type="gemma2", head_dim=6, sliding_window=3,
                   query_pre_attn_scalar=6),
}


def write(path, kind, values):
    path.write_bytes(array.array(kind, values).tobytes())
    return path


class Text:
    """Documents of odd and even lengths one behind the other, some of them only a
    separator, and the samples that a step reads of it: where rows begin and end, a
    document may be cut."""

    def __init__(self, folder):
        rng = random.Random(3)
        self.folder, self.tokens = folder, []
        while len(self.tokens) < TOKENS:
            length = rng.choice([1, 1, 2, 3, 4, 5, 7, 9])
            words = [rng.randrange(VOCABULARY - 1) for _ in range(length - 1)]
            self.tokens += [w + (w >= SEPARATOR) for w in words] + [SEPARATOR]
        self.path = write(folder / "tokens", "H", self.tokens)
        # Labels of their own, those of separators among them.
        self.labels = [rng.choice([-100, rng.randrange(VOCABULARY)]) for _ in self.tokens]
        self.labels_path = write(folder / "labels", "i", self.labels)
        self.offsets = sample_offsets(SEED, step=1, samples=BATCH,
                                      choices=len(self.tokens) - SEQUENCE)

    def documents(self, own_labels):
        """(tokens, labels) of each piece of a document in each row, the label of token j
        at j."""
        source = self.labels if own_labels else self.tokens
        for offset in self.offsets:
            tokens, labels = [], []
            for j in range(offset, offset + SEQUENCE):
                tokens.append(self.tokens[j])
                ends = self.tokens[j] == SEPARATOR
                labels.append(-100 if ends else source[j + 1])
                if ends or j + 1 == offset + SEQUENCE:
                    yield tokens, labels
                    tokens, labels = [], []


class Packed:
    def __init__(self, tools):
        self.tools = tools
        self.text = Text(tools.scratch)
        self.expected = {}

    def run(self, plan, data, labels, *options):
        grads = self.tools.scratch / "grads.safetensors"
        metrics = self.tools.run(plan, f"--data={data}", "--token-bits=16", f"--seed={SEED}",
                                 *([f"--labels={labels}"] if labels else []),
                                 f"--dump-grads={grads}", *options)
        return metrics[0]["loss"], gtp.read_safetensors(grads)

    def one_by_one(self, model, own_labels):
        """Counted labels, loss and gradients of the documents."""
        if (model, own_labels) in self.expected:
            return self.expected[model, own_labels]
        plan = self.tools.compile(self.tools.config(model, MODELS[model]), f"--seq={SEQUENCE}", "--optimizer=sgd")
        count, loss, sums = 0, 0.0, {}
        for tokens, labels in self.text.documents(own_labels):
            counted = sum(label != -100 for label in labels)
            if not counted:
                continue
            # A file of one sequence and a token, so that every sample starts at 0; a label
            # stands at the token that it predicts. Padding reads like a document.
            padding = SEQUENCE - len(tokens)
            data = write(self.tools.scratch / "one", "H", tokens + [1] * (padding + 1))
            own = write(self.tools.scratch / "one-labels", "i", [-100] + labels + [-100] * padding)
            part, grads = self.run(plan, data, own)
            count += counted
            loss += counted * part
            for name, (shape, values) in grads.items():
                total = sums.setdefault(name, (shape, [0.0] * len(values)))[1]
                for i, value in enumerate(values):
                    total[i] += counted * value
        sums = {name: (shape, [v / count for v in values]) for name, (shape, values) in sums.items()}
        self.expected[model, own_labels] = count, loss / count, sums
        return self.expected[model, own_labels]

    def together(self, model, mesh, microbatches, own_labels, *options):
        plan = self.tools.compile(self.tools.config(model, MODELS[model]), f"--mesh={mesh}", f"--seq={SEQUENCE}",
                                  f"--micro-batch={BATCH // gtp.ranks(mesh) // microbatches}",
                                  f"--global-batch={BATCH}", "--optimizer=sgd", *options)
        return self.run(plan, self.text.path, self.text.labels_path if own_labels else None)

    def check(self, model, mesh, microbatches, own_labels):
        count, loss, expected = self.one_by_one(model, own_labels)
        found_loss, found = self.together(model, mesh, microbatches, own_labels,
                                          f"--document-separator={SEPARATOR}")
        if not abs(found_loss / loss - 1) <= TOLERANCE:
            raise gtp.Failed(f"loss {found_loss}, expected {loss}")
        worst, name = gtp.compare_tensors(found, expected, TOLERANCE)
        return f"{count} labels, loss {loss:.4f}, worst {worst:.1e} {name}"

    def differs(self, model):
        """That the comparison would notice."""
        _, _, expected = self.one_by_one(model, True)
        _, found = self.together(model, "gtp=1", 1, True)
        try:
            gtp.compare_tensors(found, expected, 1e-2)
        except gtp.Failed as error:
            return str(error)
        raise gtp.Failed("gradients are the same without a separator")


def body(tools, report, arguments):
    packed = Packed(tools)
    for model in MODELS:
        for mesh, microbatches in MESHES.items():
            report.case(f"{model} {mesh} microbatches={microbatches}",
                        lambda: packed.check(model, mesh, microbatches, False))
        report.case(f"{model} dp=2,gtp=2 with --labels",
                    lambda: packed.check(model, "dp=2,gtp=2", 1, True))
        report.case(f"{model} without a separator", lambda: packed.differs(model))


if __name__ == "__main__":
    gtp.main("Packed documents against each document alone, float32", body)
