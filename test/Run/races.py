#!/usr/bin/env python3
"""Each wait of a small plan that the checker needs, removed: ThreadSanitizer must
fire, with no jitter. --bin has gtp-opt, --tsan-bin gtp-run and gtp-plan-mutate
built with ThreadSanitizer."""
import json
import os
import pathlib
import subprocess

import gtp
from mesh_equality import BASE

MINIMUM_SHARE = 0.95


def body(tools, report, arguments):
    tsan = pathlib.Path(arguments.tsan_bin).resolve()
    config = tools.scratch / "config.json"
    config.write_text(json.dumps(dict(BASE, model_type="llama", tie_word_embeddings=False,
                                      num_hidden_layers=2)))
    plan = tools.compile(config, "--mesh=dp=2,gtp=2", "--seq=8", "--micro-batch=2",
                         "--global-batch=16", "--clip-norm=1")
    data = tools.scratch / "data.bin"
    data.write_bytes(bytes((i * i // 7 + i) % 251 for i in range(4000)))
    environment = dict(os.environ, TSAN_OPTIONS="exitcode=66 halt_on_error=1 history_size=7")

    def mutate(*options):
        return subprocess.run([tsan / "gtp-plan-mutate", plan, *options], check=True,
                              capture_output=True, text=True).stdout

    def run(path, *options):
        return subprocess.run([tsan / "gtp-run", path, "--backend=host", f"--data={data}", *options],
                              capture_output=True, text=True, env=environment, timeout=300)

    def clean():
        done = run(plan, "--steps=2")
        if done.returncode != 0:
            raise gtp.Failed(f"exit {done.returncode}\n{done.stderr[-3000:]}")

    report.case("the plan as compiled runs clean", clean)

    waits = mutate().splitlines()
    needed, fired, silent = 0, 0, []
    for line in waits:
        number = line.split()[0]
        mutant = tools.scratch / "mutant.gtpplan"
        mutate(f"--drop-wait={number}", mutant)
        if run(mutant, "--verify-only").returncode == 0:
            continue  # legal without it
        needed += 1
        done = run(mutant, "--steps=2", "--unchecked")
        if "ThreadSanitizer: data race" in done.stderr:
            fired += 1
        else:
            silent.append(f"{line} (exit {done.returncode})")

    def share():
        text = (f"{len(waits)} waits, the checker needs {needed}; ThreadSanitizer fired for {fired}"
                f" ({fired / max(1, needed):.0%})")
        if needed == 0 or fired < MINIMUM_SHARE * needed:
            raise gtp.Failed(text + "\n        silent: " + "\n        silent: ".join(silent))
        return text + "".join(f"\n        silent: {line}" for line in silent)

    report.case("dropped waits", share)


if __name__ == "__main__":
    gtp.main("Races show", body, lambda parser: parser.add_argument("--tsan-bin", required=True))
