#!/usr/bin/env python3
"""Each wait of small plans that the checker needs, removed: ThreadSanitizer must fire,
with no jitter. --bin has gtp-opt, --tsan-bin gtp-run and gtp-plan-mutate built with
ThreadSanitizer."""
import os
import pathlib
import subprocess

import gtp
from mesh_equality import BASE, FAMILIES

MINIMUM_SHARE = 0.95
LLAMA = dict(BASE, model_type="llama", tie_word_embeddings=False)
# Config, then options: families, meshes, and gradients that accumulate or do not.
PLANS = {
    "llama dp=2 gtp=2": (LLAMA, "--mesh=dp=2,gtp=2", "--micro-batch=2", "--global-batch=16"),
    "gpt2 gtp=3": (dict(FAMILIES["gpt2"], n_layer=1), "--mesh=gtp=3", "--micro-batch=1",
                   "--global-batch=9"),
    "gemma2 dp=2 gtp=2": (dict(FAMILIES["gemma2"], num_hidden_layers=1), "--mesh=dp=2,gtp=2",
                          "--micro-batch=1", "--global-batch=4", "--optimizer=sgd"),
}


class Races:
    """Dropped waits of one plan."""

    def __init__(self, tools, tsan, name):
        config, *options = PLANS[name]
        self.tsan = tsan
        self.plan = tools.compile(tools.config(name, config), *options, "--seq=8", "--clip-norm=1")
        self.mutant = tools.scratch / "mutant.gtpplan"
        self.data = tools.scratch / "data.bin"
        self.data.write_bytes(bytes((i * i // 7 + i) % 251 for i in range(4000)))

    def mutate(self, *options):
        return subprocess.run([self.tsan / "gtp-plan-mutate", self.plan, *options], check=True,
                              capture_output=True, text=True).stdout

    def run(self, path, *options):
        environment = dict(os.environ, TSAN_OPTIONS="exitcode=66 halt_on_error=1 history_size=7")
        return subprocess.run([self.tsan / "gtp-run", path, "--backend=host", f"--data={self.data}",
                               f"--eval-data={self.data}", "--eval-steps=2", *options],
                              capture_output=True, text=True, env=environment, timeout=300)

    def clean(self):
        done = self.run(self.plan, "--steps=2")
        if done.returncode != 0:
            raise gtp.Failed(f"exit {done.returncode}\n{done.stderr[-3000:]}")

    def share(self):
        waits = self.mutate().splitlines()
        needed, fired, silent = 0, 0, []
        for line in waits:
            self.mutate(f"--drop-wait={line.split()[0]}", self.mutant)
            if self.run(self.mutant, "--verify-only").returncode == 0:
                continue  # legal without it
            needed += 1
            done = self.run(self.mutant, "--steps=2", "--unchecked")
            if "ThreadSanitizer: data race" in done.stderr:
                fired += 1
            else:
                silent.append(f"\n        silent: {line} (exit {done.returncode})")
        text = (f"{len(waits)} waits, the checker needs {needed}; ThreadSanitizer fired for {fired}"
                f" ({fired / max(1, needed):.0%})") + "".join(silent)
        if needed == 0 or fired < MINIMUM_SHARE * needed:
            raise gtp.Failed(text)
        return text


def body(tools, report, arguments):
    for name in PLANS:
        races = Races(tools, pathlib.Path(arguments.tsan_bin).resolve(), name)
        report.case(f"{name}: the plan as compiled runs clean", races.clean)
        report.case(f"{name}: dropped waits", races.share)


if __name__ == "__main__":
    gtp.main("Races show", body, lambda parser: parser.add_argument("--tsan-bin", required=True))
