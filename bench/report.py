"""What bench.py prints and writes of its results."""
import statistics

GIB = 1 << 30

TERMS = """\
- *step*: of gtp-run, wall clock of a step: inputs to the GPU, the step, loss and norm back; of the
  peer, between CUDA events around its step. Median, least and most over the timed steps.
- *wall*: of both, the host's clock from the end of one step to the end of the next, when the GPU has
  done it; what the host does between steps (metrics, whether to stop) is in it. Median.
- *TFLOP/s*: a GPU's share of 6 x (parameters - embedding) x tokens + 6 x layers x sequence^2 x hidden
  x sequences, i.e. attention over the causal half, nothing for recomputation; the same for both.
- *GPU memory*: of gtp-run, what cudaMemGetInfo says is in use in a step (total - free), without what
  nvidia-smi showed before it started; *claim* is the plan's arena. Of the peer the most that
  PyTorch's allocator had reserved, and in brackets what is in use.
- *compute only*: the same plan replayed without its collectives, on the weights and gradients that
  those of one step have written, by the device's clock. *communication* is the full step, by the same
  clock, minus that: stall (the compute stream waits for a collective) and contention (kernels are
  slower beside one) together. gtp-opt's prediction has the two apart.
- *stall* and *contention*, measured: of steps whose operations are timed by events on both sides.
  Contention is what the compute stream's operations take in the step more than one by one, lower
  clocks at the power limit included, which *compute only* has too; stall is
  the rest of the step, gaps between operations and the cost of the events included.
- *nodes*, *capture*, *instantiate*, *launch*: of the CUDA graph that is the step; launch is the host's
  time to put it on the GPU.
"""


def flops(results, entry):
    """Of a step, a GPU's share."""
    prediction = entry.get("prediction") or {}
    parameters = entry.get("parameters") or prediction.get("parameters")
    shape = results["shape"]
    linear = parameters - shape["vocabulary"] * shape["hidden"]
    sequence = entry["sequence"]
    return 6 * linear * sequence + 6 * shape["layers"] * sequence ** 2 * shape["hidden"]


def median(entry, key="step_ms"):
    return statistics.median(entry[key]) if entry.get(key) else None


def peer_of(results, entry):
    return next((p for p in results["peer"] if p["sequence"] == entry["sequence"] and p.get("step_ms")), None)


def ratio(results, entry, key="step_ms"):
    peer = peer_of(results, entry)
    return median(entry, key) / median(peer, key) if peer and peer.get(key) and entry.get(key) else None


def cell(value, form="{:.1f}"):
    return "-" if value is None else form.format(value)


def gib(value):
    return cell(value and value / GIB, "{:.2f}")


def speed(results, entry):
    step = median(entry)
    return [f"{step:.1f}", f"{min(entry['step_ms']):.1f}", f"{max(entry['step_ms']):.1f}",
            str(len(entry["step_ms"])), cell(median(entry, "wall_ms")), f"{entry['sequence'] * results['gpus'] / step * 1e3:.0f}",
            f"{flops(results, entry) / step / 1e9:.0f}"]


def table(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    line = lambda row: "| " + " | ".join(str(c).rjust(w) for c, w in zip(row, widths)) + " |"
    return "\n".join([line(head), "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|", *map(line, rows)])


def used(entry):
    return entry["device_bytes"] - (entry.get("idle_bytes") or 0)


def prediction(entry, key):
    found = (entry.get("prediction") or {}).get(key)
    return found / 1e3 if found is not None else None


def part(entry, name):
    """What timed operations say of the step, and what gtp-opt predicts."""
    found = (entry.get("measured") or {}).get(name + "_ns")
    return f"{cell(found and found / 1e6)} ({cell(prediction(entry, name + '_us'))})"


def tables(results):
    rows, inside = [], []
    for entry in results["ours"]:
        if not entry.get("step_ms"):
            continue
        rows.append(["gtp-run", entry["sequence"], entry["attention"], *speed(results, entry), gib(used(entry)),
                     gib(entry["peak_bytes"]), cell(ratio(results, entry), "{:.3f}"),
                     cell(ratio(results, entry, "wall_ms"), "{:.3f}")])
        device, alone = median(entry, "device_ms"), median(entry, "alone_ms")
        inside.append([entry["sequence"], entry["attention"], cell(device), cell(alone),
                       cell(device - alone if alone else None), part(entry, "step"), part(entry, "compute"),
                       part(entry, "stall"), part(entry, "contention"), cell(entry.get("graph_nodes"), "{}"),
                       cell(entry.get("capture_ms"), "{:.0f}"), cell(entry.get("instantiate_ms"), "{:.0f}"),
                       cell(entry["launch_ms"], "{:.2f}")])
    for entry in results["peer"]:
        if entry.get("step_ms"):
            rows.append(["FSDP2", entry["sequence"], entry["attention"], *speed(results, entry),
                         f"{gib(entry['reserved_bytes'])} ({gib(entry['device_bytes'])})", "-", "1", "1"])
    parts = [table(["", "sequence", "attention", "step ms", "least", "most", "steps", "wall ms", "tokens/s", "TFLOP/s a GPU",
                    "GPU memory GiB", "claim", "of the peer's step", "of its wall"], rows)]
    if inside:
        parts.append(table(["sequence", "attention", "full ms", "compute only", "communication", "timed (predicted) step",
                            "compute", "stall", "contention", "nodes", "capture ms", "instantiate ms", "launch ms"],
                           inside))
    return "\n\n".join(parts)


def line(results, side, label, entry):
    """What is printed when a phase has ended."""
    if not entry.get("step_ms"):
        return f"{label}: nothing measured in {entry['seconds']:.0f} s: {entry['ended']}"
    step, least, most, count, wall, tokens, tflops = speed(results, entry)
    text = f"{label}: {step} ms ({least} to {most}, {count} steps), wall {wall} ms, {tokens} tokens/s, {tflops} TFLOP/s a GPU"
    if side == "ours":
        text += f", {gib(used(entry))} GiB (claim {gib(entry['peak_bytes'])})"
        predicted, alone = prediction(entry, "step_us"), median(entry, "alone_ms")
        text += f"; device {median(entry, 'device_ms'):.1f} ms, compute only {cell(alone)}, predicted {cell(predicted)}"
        text += f" ({(median(entry) / predicted - 1) * 100:+.1f} %)" if predicted else ""
        share = ratio(results, entry)
        text += f"; {share:.3f} of the peer's" if share else ""
    else:
        text += f", reserved {gib(entry['reserved_bytes'])} GiB"
    if entry.get("skipped") or entry.get("alone_skipped"):
        text += f"; {entry.get('skipped', 0)} and {entry.get('alone_skipped', 0)} updates skipped"
    return text + f" [{entry['seconds']:.0f} s]" + (f"; ended early: {entry['ended']}" if entry["ended"] else "")


def page(results):
    optimizer = ", ".join(f"{key} {value}" for key, value in results["optimizer"].items())
    head = [f"# {results['model']} on {results['gpus']} GPUs, beside PyTorch FSDP2 + torch.compile", "",
            f"{results['machine']}; this tree at {results['revision']}. gtp={results['gpus']}, micro-batch 1, "
            f"{results['types']}; AdamW, {optimizer}; random tokens and weights. The peer shards as ZeRO-3, reduces "
            "in bf16, keeps float32 weights and moments.", ""]
    head += [f"- peer: {entry['versions']}" for entry in results["peer"][:1] if "versions" in entry]
    head += [f"- predicted for sequence {entry['sequence']}, attention {entry['attention']}, with --target={target}: "
             f"{cell(prediction(entry, 'step_us'))} ms; measured {cell(median(entry))} ms, "
             f"{(median(entry) / prediction(entry, 'step_us') - 1) * 100:+.1f} %"
             for entry in results["ours"] if entry.get("step_ms")
             for target in [(entry.get("prediction") or {}).get("target")] if target]
    notes = [f"- not measured: {note}" for note in results["notes"]]
    notes += [f"- ended early, sequence {entry['sequence']}: {entry['ended']}"
              for side in ("ours", "peer") for entry in results[side] if entry["ended"]]
    return "\n".join([*head, "", tables(results), "", *notes, "", TERMS])
