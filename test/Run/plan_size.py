#!/usr/bin/env python3
"""A large plan: time, memory, bytes, and that neither microbatches nor ranks grow it."""
import os
import subprocess

import gtp

CONFIG = gtp.HERE.parent / "Import" / "Inputs" / "llama-3.1-70b-instruct.json"
COMMON = ["--seq=4096", "--dtype=bf16", "--target=h200"]
# The least of so many: what else a machine does makes one compilation a fifth slower.
ROUNDS = 9


class Case:
    """One compilation, measured ROUNDS times."""

    def __init__(self, tools, name, *options):
        self.plan = tools.scratch / f"{name}.gtpplan"
        self.command = [str(tools.bin / "gtp-opt"), str(CONFIG), *COMMON, *options, "--emit=plan",
                        "-o", str(self.plan)]
        # Seconds of processors: what else the machine does matters little to them.
        self.seconds, self.peak = [], 0

    def compile(self):
        child = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status != 0:
            raise gtp.Failed(errors[-2000:])
        self.seconds.append(usage.ru_utime + usage.ru_stime)
        self.peak = max(self.peak, usage.ru_maxrss)

    @property
    def least(self):
        return min(self.seconds)

    @property
    def bytes(self):
        return self.plan.stat().st_size


def body(tools, report, arguments):
    cases = {
        "one microbatch": Case(tools, "m1", "--mesh=gtp=8", "--global-batch=8"),
        "1,000 microbatches": Case(tools, "m1000", "--mesh=gtp=8", "--global-batch=8000"),
        "8 ranks": Case(tools, "r8", "--mesh=dp=1,gtp=8"),
        "16,384 ranks": Case(tools, "r16384", "--mesh=dp=2048,gtp=8"),
    }

    def measure():
        for _ in range(ROUNDS):
            for case in cases.values():
                case.compile()
        return f"{ROUNDS} rounds, interleaved"

    def budget():
        case = cases["one microbatch"]
        if case.least > 12 or case.peak > 2 * 1024 * 1024:
            raise gtp.Failed(f"{case.least:.1f} processor seconds and {case.peak // 1024} MiB, at most 12 s and 2048 MiB")
        return f"{case.least:.1f} s, {case.peak // 1024} MiB, {case.bytes} bytes"

    def ratio(small, large, bytes_limit):
        a, b = cases[small], cases[large]
        size, seconds = b.bytes / a.bytes - 1, b.least / a.least - 1
        text = (f"bytes {a.bytes} {b.bytes} ({size:+.1%}), "
                f"processor seconds {a.least:.2f} {b.least:.2f} ({seconds:+.1%})")
        # A larger step may compile faster: its gradients are in no arena.
        if abs(size) >= bytes_limit or seconds >= 0.20:
            raise gtp.Failed(text)
        return text

    def verified():
        for case in cases.values():
            tools.call("gtp-run", case.plan, "--verify-only")

    report.case("llama-3.1-70b, gtp=8, sequence 4096, bf16, h200", measure)
    report.case("at most 12 s and 2 GiB", budget)
    report.case("1 and 1,000 microbatches", lambda: ratio("one microbatch", "1,000 microbatches", 0.05))
    report.case("8 and 16,384 ranks", lambda: ratio("8 ranks", "16,384 ranks", 0.10))
    report.case("gtp-run --verify-only accepts all four", verified)


if __name__ == "__main__":
    gtp.main("Size and time of a large plan", body)
