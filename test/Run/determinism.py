#!/usr/bin/env python3
"""Same input, same plan bytes; same plan, same bits whatever the threads do."""
import gtp
from mesh_equality import BASE

SEEDS = range(10)
MESH = "dp=2,gtp=2"


def options(tools, seed=None):
    data = tools.scratch / "data.bin"
    if not data.exists():
        data.write_bytes(bytes((i * i // 7 + i) % 251 for i in range(6000)))
    weights = tools.scratch / f"weights-{seed}.safetensors"
    jitter = [] if seed is None else [f"--host-jitter={seed}"]
    return weights, [f"--data={data}", "--steps=3", f"--dump-weights={weights}", *jitter]


def body(tools, report, arguments):
    config = tools.config("llama", dict(BASE, model_type="llama", tie_word_embeddings=True))
    flags = [f"--mesh={MESH}", "--seq=8", "--micro-batch=2", "--global-batch=16", "--clip-norm=1"]

    def same_bytes(*extra):
        first = tools.compile(config, *flags).read_bytes()
        again = tools.scratch / "again.gtpplan"
        tools.call("gtp-opt", config, *flags, "--dtype=f32", *extra, "--emit=plan", "-o", again)
        if again.read_bytes() != first:
            raise gtp.Failed("plan bytes differ")
        return f"{len(first)} bytes"

    report.case("a second compilation", same_bytes)
    report.case("--mlir-disable-threading", lambda: same_bytes("--mlir-disable-threading"))

    plan = tools.compile(config, *flags)
    weights, run_options = options(tools)
    losses = [line["loss"] for line in tools.run(plan, *run_options)]
    expected = weights.read_bytes()

    def same_bits(seed):
        dumped, seeded = options(tools, seed)
        found = [line["loss"] for line in tools.run(plan, *seeded)]
        if found != losses:
            raise gtp.Failed(f"losses {found}, expected {losses}")
        if dumped.read_bytes() != expected:
            raise gtp.Failed("weights differ")

    for seed in SEEDS:
        report.case(f"jitter seed {seed}: same losses and weights", lambda: same_bits(seed))


if __name__ == "__main__":
    gtp.main("Determinism", body)
