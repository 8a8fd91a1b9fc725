#!/usr/bin/env python3
"""The example of a model written by hand trains, and every mesh trains it alike."""
import gtp

EXAMPLE = gtp.HERE.parent.parent / "examples" / "parallel_decoder.mlir"
TEXT = gtp.HERE.parent.parent / "examples" / "demo" / "kjv.txt"
MESHES = ["gtp=1", "gtp=4", "dp=2,gtp=2"]
STEPS = 15


def train(tools, mesh):
    plan = tools.compile(EXAMPLE, f"--mesh={mesh}", f32=False)
    weights = tools.scratch / "weights.safetensors"
    metrics = tools.run(plan, f"--data={TEXT}", f"--steps={STEPS}", "--lr=3e-3",
                        f"--dump-weights={weights}")
    return [m["loss"] for m in metrics], gtp.read_safetensors(weights)


def learns(losses, weights):
    if not losses[-1] < losses[0] - 1:
        raise gtp.Failed(f"loss {losses[0]} -> {losses[-1]}, expected to fall by 1")
    # Checkpoint names, also where one parameter is two tensors.
    for name, shape in {"mlp.up.weight": (96, 48), "layers.1.v.weight": (24, 48)}.items():
        if weights[name][0] != shape:
            raise gtp.Failed(f"{name}: {weights[name][0]}, expected {shape}")
    return f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {len(weights)} tensors"


def equal(tools, mesh, expected):
    losses, _ = train(tools, mesh)
    worst = max(abs(a / b - 1) for a, b in zip(losses, expected))
    if len(losses) != STEPS or not worst <= 1e-4:
        raise gtp.Failed(f"losses off by {worst:.2e}, at most 1e-4 allowed")
    return f"{STEPS} losses, worst {worst:.1e}"


def body(tools, report, arguments):
    losses, weights = train(tools, MESHES[0])
    report.case(f"{MESHES[0]} learns", lambda: learns(losses, weights))
    for mesh in MESHES[1:]:
        report.case(f"{mesh} as one rank", lambda: equal(tools, mesh, losses))


if __name__ == "__main__":
    gtp.main("A model written by hand", body)
