#!/usr/bin/env python3
"""Writes the PyTorch reference that test/Run/torch_parity.py compares with.

For each tiny model: config.json, weights.safetensors (random, float32), tokens.bin,
labels.bin, options.txt where gtp-opt needs more than the config, and
reference.safetensors, which holds the gradient of every parameter and the loss (tensor
"loss"), computed by `transformers` in float32 on the samples that `gtp-run --seed=3` draws
for step 1. eval.json, for test/Run/held_out.py, has the loss of the whole text in windows
one behind the other, the last one shorter, and how many labels count. Models of SEQUENCE_MEAN
also get reference-sequence.safetensors, with the loss of --loss=sequence-mean and labels of which
two sequences have none.

    pip install torch transformers safetensors
    test/Run/Inputs/make_torch_reference.py test/Run/Inputs/torch [MODEL...]
"""
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from philox import sample_offsets

VOCABULARY, SEQUENCE, BATCH, SEED = 131, 8, 12, 3
COMMON = dict(vocab_size=VOCABULARY, hidden_size=36, intermediate_size=52, num_hidden_layers=2,
              num_attention_heads=6, num_key_value_heads=2, head_dim=8, max_position_embeddings=64,
              rms_norm_eps=1e-5, initializer_range=0.02, hidden_act="silu", attention_bias=False)
# Families whose heads are hidden / heads.
PLAIN = {k: v for k, v in COMMON.items() if k not in ("head_dim", "attention_bias")}
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
MODELS = {
    "llama-untied": dict(COMMON, model_type="llama", tie_word_embeddings=False, rope_theta=10000.0,
                         rope_scaling=None, mlp_bias=False),
    "llama-tied": dict(COMMON, model_type="llama", tie_word_embeddings=True, rope_theta=500000.0,
                       rope_scaling=LLAMA3, mlp_bias=False),
    "qwen3": dict(COMMON, model_type="qwen3", tie_word_embeddings=False, rope_theta=1000000.0,
                  rope_scaling=None, use_sliding_window=False),
    "mistral": dict(COMMON, model_type="mistral", tie_word_embeddings=False, rope_theta=10000.0,
                    sliding_window=3),
    "qwen2": dict(PLAIN, model_type="qwen2", tie_word_embeddings=True, rope_theta=1000000.0,
                  use_sliding_window=False),
    "phi3": dict(PLAIN, model_type="phi3", tie_word_embeddings=False, rope_theta=10000.0,
                 sliding_window=5, partial_rotary_factor=0.7, pad_token_id=None),
    "olmo2": dict(PLAIN, model_type="olmo2", tie_word_embeddings=False, rope_theta=500000.0,
                  pad_token_id=None),
    "gpt2": dict(model_type="gpt2", vocab_size=VOCABULARY, n_embd=36, n_layer=2, n_head=4,
                 n_positions=13, activation_function="gelu_new", layer_norm_epsilon=1e-5,
                 initializer_range=0.02, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                 tie_word_embeddings=True),
    "gpt_neox": dict(model_type="gpt_neox", vocab_size=VOCABULARY, hidden_size=40,
                     intermediate_size=52, num_hidden_layers=2, num_attention_heads=5,
                     max_position_embeddings=64, layer_norm_eps=1e-5, initializer_range=0.02,
                     hidden_act="gelu", rotary_pct=0.25, rotary_emb_base=10000,
                     use_parallel_residual=True, tie_word_embeddings=False),
    "gpt_neox-serial": dict(model_type="gpt_neox", vocab_size=VOCABULARY, hidden_size=24,
                            intermediate_size=36, num_hidden_layers=1, num_attention_heads=3,
                            max_position_embeddings=64, layer_norm_eps=1e-5,
                            initializer_range=0.02, hidden_act="gelu_new", rotary_pct=1.0,
                            rotary_emb_base=5000, use_parallel_residual=False,
                            tie_word_embeddings=True),
    "gemma2": dict({k: v for k, v in COMMON.items() if k != "hidden_act"}, model_type="gemma2",
                   hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
                   rope_theta=10000.0, sliding_window=3, query_pre_attn_scalar=12,
                   attn_logit_softcapping=2.0, final_logit_softcapping=3.0, pad_token_id=None),
    "llama-packed": dict(COMMON, model_type="llama", tie_word_embeddings=False,
                         rope_theta=10000.0, mlp_bias=False),
}
# Models whose sequences hold documents, each of which ends in this token.
SEPARATORS = {"llama-packed": 5}
SEQUENCE_MEAN = ["gpt2", "llama-untied"]


def build(config):
    kind = transformers.AutoConfig.for_model(config["model_type"]).__class__
    fields = {k: v for k, v in config.items() if k != "model_type"}
    model = transformers.AutoModelForCausalLM.from_config(kind(**fields), attn_implementation="eager")
    return model.to(torch.float32)


def logits_of(model, ids, separator):
    """Of documents that know nothing of each other: positions restart behind a separator,
    and a mask keeps attention in the document."""
    if separator is None:
        return model(input_ids=ids, use_cache=False).logits
    index = torch.arange(ids.shape[1]).expand_as(ids)
    ends = torch.cat([torch.zeros_like(ids[:, :1]), (ids == separator).long()[:, :-1]], dim=1)
    start = torch.cummax(torch.where(ends == 1, index, 0), dim=1).values
    seen = (index[:, None, :] <= index[:, :, None]) & (index[:, None, :] >= start[:, :, None])
    mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[:, None]
    return model(input_ids=ids, position_ids=index - start, attention_mask=mask,
                 use_cache=False).logits


def held_out(model, tokens, labels, separator):
    """The loss of windows one behind the other, and the number of counted labels."""
    total, count = 0.0, 0
    for begin in range(0, len(tokens) - 1, SEQUENCE):
        end = min(begin + SEQUENCE, len(tokens) - 1)
        ids = torch.tensor(tokens[begin:end].astype(np.int64))[None]
        targets = torch.tensor(labels[begin + 1:end + 1].astype(np.int64))
        if separator is not None:
            targets[ids[0] == separator] = -100
        with torch.no_grad():
            logits = logits_of(model, ids, separator)[0]
        total += F.cross_entropy(logits.double(), targets, ignore_index=-100, reduction="sum").item()
        count += int((targets != -100).sum())
    return {"loss": total / count, "labels": count}


def main():
    root = pathlib.Path(sys.argv[1])
    for number, (name, config) in enumerate(MODELS.items()):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        out = root / name
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        torch.manual_seed(number)
        random = np.random.default_rng(number)
        model = build(config)
        with torch.no_grad():
            for weight, parameter in model.named_parameters():
                spread = 0.2 if parameter.dim() > 1 else 0.3
                centre = float(parameter.dim() == 1 and not weight.endswith(".bias"))
                parameter.copy_(torch.randn_like(parameter) * spread + centre)
        names = dict(model.named_parameters())  # a tied weight once
        if config["model_type"] == "gpt_neox" and "lm_head.weight" in names:
            names["embed_out.weight"] = names.pop("lm_head.weight")  # as checkpoints name it
        save_file({k: v.detach().contiguous() for k, v in names.items()}, out / "weights.safetensors")

        tokens = random.integers(0, VOCABULARY, 400).astype("<u2")
        separator = SEPARATORS.get(name)
        if separator is not None:
            tokens[random.random(400) < 0.25] = separator
            (out / "options.txt").write_text(f"--document-separator={separator}\n")
        labels = tokens.astype("<i4")
        labels[random.random(400) < 0.2] = -100
        tokens.tofile(out / "tokens.bin")
        labels.tofile(out / "labels.bin")
        offsets = sample_offsets(SEED, step=1, samples=BATCH, choices=len(tokens) - SEQUENCE)
        ids = torch.tensor(np.stack([tokens[o:o + SEQUENCE] for o in offsets]).astype(np.int64))
        targets = torch.tensor(np.stack([labels[o + 1:o + 1 + SEQUENCE] for o in offsets]).astype(np.int64))
        if separator is not None:
            targets[ids == separator] = -100
        def save(loss, file):
            model.zero_grad()
            loss.backward()
            reference = {k: v.grad.contiguous() for k, v in names.items()}
            reference["loss"] = loss.detach().reshape(1)
            save_file(reference, out / file)

        def terms(targets):
            logits = logits_of(model, ids, separator)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100,
                                   reduction="none").reshape(targets.shape)

        loss = terms(targets).sum() / max(1, int((targets != -100).sum()))
        save(loss, "reference.safetensors")
        (out / "eval.json").write_text(json.dumps(held_out(model, tokens, labels, separator)) + "\n")
        if name in SEQUENCE_MEAN:
            for sample in (1, 7):
                labels[offsets[sample] + 1:offsets[sample] + 1 + SEQUENCE] = -100
            labels.tofile(out / "labels-sequence.bin")
            targets = torch.tensor(
                np.stack([labels[o + 1:o + 1 + SEQUENCE] for o in offsets]).astype(np.int64))
            counts = (targets != -100).sum(1)
            means = terms(targets).sum(1)[counts > 0] / counts[counts > 0]
            save(means.mean(), "reference-sequence.safetensors")
        print(f"{name}: loss {loss.item():.6f}, {sum(p.numel() for p in names.values())} parameters, "
              f"torch {torch.__version__}, transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
