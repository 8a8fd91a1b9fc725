#!/usr/bin/env python3
"""A plan by each transport of its collectives: the same bits. Needs two GPUs.

Transports are forced by profiles that lack the others. Without gtp-opt, --plans is a folder
of plans that --make-plans has made elsewhere.
"""
import json
import pathlib

import gtp
from cuda_parity import losses, on_cuda

STEPS = 6
PROFILE = gtp.HERE.parents[1] / "lib" / "Machine" / "profiles" / "h200.json"
# The transports that a profile's links keep: of gathers, reduce-scatters and all-reduces.
TARGETS = {
    "best": None,
    "ring": ("ring", "ring", "ring"),
    "pairs": ("symmetric", "pairwise", "pairwise"),
    "copies": ("copy_engine", "copy_engine", "pairwise"),
}
TYPES = {"f32": ["--dtype=f32"],
         "sent": ["--dtype=bf16", "--reduce-dtype=bf16"],
         "half": ["--dtype=bf16", "--grad-dtype=bf16"]}
KINDS = ("all_gather", "reduce_scatter", "all_reduce")


def profile(tools, name):
    """A target file; what no other transport computes keeps the pairs."""
    if TARGETS[name] is None:
        return "h200"
    data = json.loads(PROFILE.read_text())
    keep = dict(zip(KINDS, TARGETS[name]))
    data["network"]["links"] = [
        link for link in data["network"]["links"]
        if link["transport"] == keep.get(link["collective"], link["transport"])
        or (link["collective"] != "all_gather" and link["transport"] == "pairwise")]
    data["network"]["ranks_per_link_domain"] = 0
    path = tools.scratch / f"{name}.json"
    path.write_text(json.dumps(data))
    return path


def plan_name(mesh, types, target):
    return f"transports-{mesh.replace('=', '')}-{types}-{target}.gtpplan"


def make(tools, model, mesh, types, target):
    return tools.compile(model / "config.json", f"--mesh={mesh}", "--seq=8", "--micro-batch=3",
                         "--global-batch=12", "--clip-norm=1", f"--target={profile(tools, target)}",
                         *TYPES[types], *gtp.reference_options(model), f32=False)


def train(tools, model, plan, run):
    weights = tools.scratch / "weights.safetensors"
    metrics = run(tools, plan, *gtp.reference_data(model), f"--steps={STEPS}", "--lr=3e-3",
                  f"--dump-weights={weights}")
    return losses(metrics), weights.read_bytes()


def add_options(parser):
    parser.add_argument("--plans", type=pathlib.Path, help="folder of plans made before")
    parser.add_argument("--make-plans", action="store_true", help="make --plans and stop")
    parser.add_argument("--meshes", default="gtp=2,dp=2")
    parser.add_argument("--types", default=",".join(TYPES))


def body(tools, report, arguments):
    model = gtp.TORCH / "llama-untied"
    for mesh in arguments.meshes.split(","):
        for types in arguments.types.split(","):
            first = {}

            def case(target):
                path = arguments.plans and arguments.plans / plan_name(mesh, types, target)
                if arguments.make_plans:
                    arguments.plans.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(make(tools, model, mesh, types, target).read_bytes())
                    return None
                plan = path or make(tools, model, mesh, types, target)
                found = train(tools, model, plan, on_cuda)
                if not first:
                    host, _ = train(tools, model, plan, gtp.Tools.run)
                    worst = max(abs(a[0] - b[0]) / abs(b[0]) for a, b in zip(found[0], host))
                    limit = 1e-4 if types == "f32" else 2e-2
                    if worst > limit:
                        raise gtp.Failed(f"losses differ by {worst:.2e} from the host's")
                    first["best"] = found
                    return f"worst difference of losses from the host's {worst:.1e}"
                if found != first["best"]:
                    raise gtp.Failed("other bits than by the best transports")
                return "the same bits"

            for target in TARGETS:
                report.case(f"{mesh} {types} {target}", lambda: case(target))


if __name__ == "__main__":
    gtp.main("Collectives by each transport", body, add_options)
