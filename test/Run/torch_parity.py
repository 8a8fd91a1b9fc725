#!/usr/bin/env python3
"""Loss and every gradient against PyTorch (see Inputs/make_torch_reference.py)."""
import array

import gtp

BATCH = 12
MESHES = ["gtp=1", "gtp=3", "dp=2,gtp=2"]
# Labels and reference of each --loss; models with the second have it for all.
FILES = {"token-mean": ("labels.bin", "reference.safetensors"),
         "sequence-mean": ("labels-sequence.bin", "reference-sequence.safetensors")}


def without_prefix(tools, model):
    """The weights as a checkpoint of the model without its head has them: other names, and the
    masks that old exports hold."""
    weights = gtp.read_safetensors(model / "weights.safetensors")
    renamed = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    renamed["h.0.attn.bias"] = ((1, 1, 2, 2), array.array("f", [1, 0, 1, 1]))
    path = tools.scratch / "renamed.safetensors"
    gtp.write_safetensors(path, renamed)
    return path


def parity(tools, model, mesh, ranks, weights=None, loss="token-mean"):
    labels, reference = FILES[loss]
    plan = tools.compile(model / "config.json", f"--mesh={mesh}", "--seq=8",
                         f"--micro-batch={BATCH // ranks}", f"--global-batch={BATCH}",
                         "--optimizer=sgd", f"--loss={loss}",
                         *gtp.reference_options(model))
    grads = tools.scratch / "grads.safetensors"
    metrics = tools.run(plan, f"--data={model / 'tokens.bin'}", "--token-bits=16",
                        f"--labels={model / labels}",
                        f"--weights={weights or model / 'weights.safetensors'}", "--steps=1", "--seed=3",
                        f"--dump-grads={grads}")
    expected = gtp.read_safetensors(model / reference)
    loss = expected.pop("loss")[1][0]
    if abs(metrics[0]["loss"] - loss) > 1e-4 * abs(loss):
        raise gtp.Failed(f"loss {metrics[0]['loss']}, expected {loss}")
    worst, name = gtp.compare_tensors(gtp.read_safetensors(grads), expected, 1e-4)
    return f"loss {metrics[0]['loss']:.6f} (torch {loss:.6f}), worst gradient {worst:.1e} {name}"


def body(tools, report, arguments):
    for model in sorted((gtp.HERE / "Inputs" / "torch").iterdir()):
        for mesh in MESHES:
            ranks = 1
            for axis in mesh.split(","):
                ranks *= int(axis.split("=")[1])
            report.case(f"{model.name} {mesh}", lambda: parity(tools, model, mesh, ranks))
            if (model / FILES["sequence-mean"][1]).exists():
                report.case(f"{model.name} {mesh} sequence-mean",
                            lambda: parity(tools, model, mesh, ranks, loss="sequence-mean"))
    gpt2 = gtp.HERE / "Inputs" / "torch" / "gpt2"
    report.case("gpt2 gtp=3, names without transformer.",
                lambda: parity(tools, gpt2, "gtp=3", 3, without_prefix(tools, gpt2)))


if __name__ == "__main__":
    gtp.main("Loss and gradients against PyTorch, float32", body)
