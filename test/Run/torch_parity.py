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


def parity(tools, model, mesh, weights=None, loss="token-mean"):
    labels, reference = FILES[loss]
    plan = tools.compile(model / "config.json", f"--mesh={mesh}", "--seq=8",
                         f"--micro-batch={BATCH // gtp.ranks(mesh)}", f"--global-batch={BATCH}",
                         "--optimizer=sgd", f"--loss={loss}",
                         *gtp.reference_options(model))
    grads = tools.scratch / "grads.safetensors"
    metrics = tools.run(plan, *gtp.reference_data(model, labels, weights), "--steps=1",
                        f"--dump-grads={grads}")
    return gtp.compare_with_torch(metrics[0], grads, model / reference)[0]


def body(tools, report, arguments):
    for model in gtp.torch_models():
        for mesh in MESHES:
            report.case(f"{model.name} {mesh}", lambda: parity(tools, model, mesh))
            if (model / FILES["sequence-mean"][1]).exists():
                report.case(f"{model.name} {mesh} sequence-mean",
                            lambda: parity(tools, model, mesh, loss="sequence-mean"))
    gpt2 = gtp.TORCH / "gpt2"
    report.case("gpt2 gtp=3, names without transformer.",
                lambda: parity(tools, gpt2, "gtp=3", without_prefix(tools, gpt2)))


if __name__ == "__main__":
    gtp.main("Loss and gradients against PyTorch, float32", body)
