#!/usr/bin/env python3
"""Broken plans are refused by the rule that each was broken for, harmless rewrites are
accepted, and what is accepted computes the same bits."""
import re

import gtp
from mesh_equality import BASE, FAMILIES

SEQUENCE, TOKENS = 8, 3000
SMALL = dict(num_hidden_layers=1, hidden_size=70, intermediate_size=50)
GPT2 = dict(FAMILIES["gpt2"], n_layer=1, n_inner=50)
LLAMA = dict(BASE, model_type="llama", tie_word_embeddings=False, num_hidden_layers=2,
             hidden_size=30, intermediate_size=50)


def small(family):
    return dict(FAMILIES[family], **SMALL)


# Name: config, mesh, microbatches, further options.
PLANS = {
    "llama1": (LLAMA, 1, 1, 1, []),
    "llama22": (LLAMA, 2, 2, 3, ["--clip-norm=1"]),
    "llama3": (dict(LLAMA, num_hidden_layers=1), 1, 3, 1, ["--optimizer=sgd"]),
    "bf16": (dict(LLAMA, num_hidden_layers=1), 1, 2, 2, ["--dtype=bf16"]),
    "qwen3": (dict(LLAMA, model_type="qwen3", tie_word_embeddings=True), 1, 2, 3, []),
    "gpt2": (GPT2, 2, 3, 3, ["--clip-norm=1"]),
    "gpt2-sgd": (GPT2, 2, 2, 1, ["--optimizer=sgd"]),
    "neox": (small("gpt_neox"), 2, 2, 2, []),
    "gemma2": (small("gemma2"), 1, 4, 1, ["--clip-norm=1"]),
    "phi3": (small("phi3"), 1, 2, 2, ["--optimizer=sgd", "--dtype=bf16"]),
    "qwen2": (small("qwen2"), 3, 1, 2, []),
    "olmo2": (small("olmo2"), 2, 3, 1, ["--dtype=bf16"]),
    "frozen": (small("gpt_neox"), 2, 2, 2, ["--freeze=.*attention.*", "--replicate=.*mlp.*"]),
    # Gathers in place of pieces that copies put there, and transports that need windows,
    # thread blocks and scratch.
    "own2": (LLAMA, 1, 2, 3, ["--target=h200", "--clip-norm=1"]),
    "own22": (dict(LLAMA, num_hidden_layers=1), 2, 2, 1, ["--target=h200", "--dtype=bf16"]),
    "own-gpt2": (dict(GPT2, n_layer=2), 2, 3, 2, ["--target=h200", "--optimizer=sgd"]),
}


def body(tools, report, arguments):
    data = tools.scratch / "data.bin"
    data.write_bytes(bytes((i * i // 7 + i) % 251 for i in range(TOKENS)))
    plans = {}
    for name, (config, dp, degree, microbatches, options) in PLANS.items():
        plan = tools.scratch / f"{name}.gtpplan"
        options = options if any("dtype" in o for o in options) else [*options, "--dtype=f32"]
        tools.call("gtp-opt", tools.config(name, config), f"--mesh=dp={dp},gtp={degree}", f"--seq={SEQUENCE}",
                   f"--global-batch={dp * degree * microbatches}", "--micro-batch=1", *options,
                   "--emit=plan", "-o", plan)
        plans[name] = plan
    accepted = tools.scratch / "accepted"
    accepted.mkdir()

    def matrix():
        done = tools.call("gtp-plan-mutate", f"--matrix={accepted}", *plans.values(), check=False)
        print(done.stdout, end="", flush=True)
        if done.returncode != 0:
            raise gtp.Failed(f"exit {done.returncode} {done.stderr}")
        summary = done.stdout.splitlines()[-2]
        illegal, harmless = map(int, re.search(r": (\d+) kinds of mutations .* (\d+) kinds of",
                                               summary).groups())
        if illegal < 20 or harmless < 10 or len(plans) < 12:
            raise gtp.Failed(f"{summary}, expected 20, 10 and 12")
        return ""

    report.case("every kind over every plan", matrix)

    def bits(plan):
        weights = tools.scratch / "weights.safetensors"
        weights.unlink(missing_ok=True)
        metrics = tools.run(plan, f"--data={data}", "--steps=2", "--lr=1e-2",
                            f"--dump-weights={weights}")
        return [(m["loss"], m["grad_norm"]) for m in metrics], weights.read_bytes()

    def same_bits():
        expected = {name: bits(plan) for name, plan in plans.items()
                    if "--dtype=bf16" not in PLANS[name][-1]}
        differ, count = [], 0
        for mutant in sorted(accepted.iterdir()):
            name = mutant.name.split(".")[0]
            if name not in expected:
                continue
            count += 1
            if bits(mutant) != expected[name]:
                differ.append(mutant.name)
        if differ or count == 0:
            raise gtp.Failed(f"{len(differ)} of {count} compute other bits: {' '.join(differ)}")
        return f"{count} accepted mutants"

    report.case("accepted mutants compute the same bits", same_bits)

    def rank_plan():
        mutant = tools.scratch / "rank.gtpplan"
        tools.call("gtp-plan-mutate", "--kind=rank-other-wire", plans["llama22"], mutant)
        done = tools.call("gtp-run", plans["llama22"], f"--rank-plan=3:{mutant}", "--verify-only",
                          check=False)
        if done.returncode != 1 or "[collective-order] ranks" not in done.stderr:
            raise gtp.Failed(f"exit {done.returncode}: {done.stderr}")
        return "[collective-order]"

    report.case("a rank with another sequence of collectives is refused", rank_plan)


if __name__ == "__main__":
    gtp.main("Broken and rewritten plans", body)
