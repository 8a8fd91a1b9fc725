#!/usr/bin/env python3
"""docs/tutorial.md does what it says: every command of it runs, in its order.

Commands are the lines of its ```sh blocks; one that starts with `!` must fail. They run in a
copy of what the tutorial reads, so that nothing is left in the project.
"""
import json
import os
import re
import subprocess

import gtp

ROOT = gtp.HERE.parent.parent


def commands():
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M):
        yield from block.splitlines()


def body(tools, report, arguments):
    for name in ("examples", "test"):
        (tools.scratch / name).symlink_to(ROOT / name)
    environment = dict(os.environ, bin=str(tools.bin))

    def run(command):
        fails = command.startswith("! ")
        done = subprocess.run(["bash", "-c", command.removeprefix("! ")], cwd=tools.scratch,
                              env=environment, capture_output=True, text=True, timeout=300)
        # diff says with 1 that it found something, and with 2 that it failed.
        if done.returncode != (1 if fails else 0):
            raise gtp.Failed(f"exit {done.returncode}\n{done.stderr[-2000:]}")

    for command in commands():
        if command.startswith("bin="):
            continue  # where this test's programs are
        report.case(command[:58], lambda: run(command))

    def losses(name, key="loss"):
        path = tools.scratch / "build" / "tutorial" / name
        return [json.loads(line)[key] for line in path.read_text().splitlines()]

    def falls():
        found = losses("run.jsonl")
        if not found[-1] < found[0] - 1:
            raise gtp.Failed(f"losses {found}")
        return f"{found[0]:.2f} to {found[-1]:.2f}"

    def held_out():
        loss, = losses("rest.jsonl", "eval_loss")
        if not loss < 4:
            raise gtp.Failed(f"loss {loss}")
        return f"{loss:.2f}"

    def same_training():
        gap = max(abs(a - b) for a, b in zip(losses("run.jsonl"), losses("small.jsonl")))
        if not gap < 1e-3:
            raise gtp.Failed(f"losses differ by {gap}")
        return f"at most {gap:.1e} apart"

    report.case("the loss falls", falls)
    report.case("the text that was kept is learned too", held_out)
    report.case("one sequence a microbatch is the same training", same_training)


if __name__ == "__main__":
    gtp.main("Tutorial", body)
