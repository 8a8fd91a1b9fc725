#!/usr/bin/env python3
"""Every logical gradient set to 1: the global norm is exactly sqrtf(parameters), on
each mesh, so padding counts nowhere and replicas count once."""
import json
import math
import struct

import gtp
from mesh_equality import BATCH, MESHES, MODELS, SEQUENCE


def norm(tools, model, dp, degree):
    config = tools.config(model, MODELS[model])
    stats = tools.scratch / "stats.json"
    flags = [f"--mesh=dp={dp},gtp={degree}", f"--seq={SEQUENCE}", "--dtype=f32",
             f"--micro-batch={BATCH // (dp * degree)}", f"--global-batch={BATCH}", "--optimizer=sgd"]
    step = tools.scratch / "step.mlir"
    ones = tools.scratch / "ones.mlir"
    planned = tools.scratch / "planned.mlir"
    plan = tools.scratch / "ones.gtpplan"
    tools.call("gtp-opt", config, *flags, "--stop-after=tfm-differentiate", "-o", step)
    tools.call("gtp-opt", step, "--test-tfm-unit-gradients", "-o", ones)
    # The checker refuses it, rightly: a constant is no contribution to a gradient.
    tools.call("gtp-opt", ones, *flags, "--stop-after=plan-insert-events", f"--stats={stats}",
               "-o", planned)
    tools.call("gtp-opt", planned, f"--test-plan-emit=output={plan}", "-o", "/dev/null")
    data = tools.scratch / "data.bin"
    data.write_bytes(bytes(i % 251 for i in range(4000)))
    found = tools.run(plan, f"--data={data}", "--steps=1", "--unchecked")[0]["grad_norm"]
    parameters = json.loads(stats.read_text())["parameters"]
    expected = struct.unpack("f", struct.pack("f", math.sqrt(parameters)))[0]
    if found != expected:
        raise gtp.Failed(f"norm {found!r}, expected {expected!r} = sqrtf({parameters})")
    return f"sqrtf({parameters}) = {found}"


def body(tools, report, arguments):
    for model in MODELS:
        for dp, degree in [(1, 1), *MESHES]:
            report.case(f"{model} dp={dp} gtp={degree}", lambda: norm(tools, model, dp, degree))


if __name__ == "__main__":
    gtp.main("Unit gradients", body)
