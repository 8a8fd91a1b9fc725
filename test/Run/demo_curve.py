#!/usr/bin/env python3
"""The demo's training on one rank follows the curve of four ranks within 1 %."""
import gtp

DEMO = gtp.HERE.parent.parent / "examples" / "demo"
HELD_OUT = 65536


def body(tools, report, arguments):
    text = (DEMO / "kjv.txt").read_bytes()
    data = tools.scratch / "train.txt"
    data.write_bytes(text[:-HELD_OUT])
    report_steps = max(1, arguments.steps // 8)

    def losses(mesh, micro_batch):
        plan = tools.compile(DEMO / "config.json", f"--mesh={mesh}", "--seq=128", "--clip-norm=1",
                             f"--micro-batch={micro_batch}", "--global-batch=16")
        metrics = tools.run(plan, f"--data={data}", f"--steps={arguments.steps}", "--lr=1e-3",
                            "--seed=1")
        return [line["loss"] for line in metrics]

    def same_curve():
        one, four = losses("gtp=1", 16), losses("gtp=4", 4)
        for step in range(0, arguments.steps, report_steps):
            print(f"        step {step + 1:4}: one rank {one[step]:.4f}, four ranks {four[step]:.4f}")
        worst = max(abs(a / b - 1) for a, b in zip(four, one))
        if len(one) != arguments.steps or len(four) != arguments.steps or not worst <= 0.01:
            raise gtp.Failed(f"off by {worst:.2%}, at most 1 % allowed")
        return f"{one[0]:.3f} -> {one[-1]:.3f}, worst {worst:.1e}"

    report.case(f"{arguments.steps} steps", same_curve)


if __name__ == "__main__":
    gtp.main("The demo's curve on one rank and on four", body,
             lambda parser: parser.add_argument("--steps", type=int, default=100))
