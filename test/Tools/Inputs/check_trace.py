"""Checks that a file is what Perfetto and chrome://tracing read: the Trace Event Format.

check_trace.py TRACE STATS: prints what was found, or ends with the first error.
"""
import collections
import json
import sys

trace = json.load(open(sys.argv[1], encoding="utf-8"))
stats = json.load(open(sys.argv[2], encoding="utf-8"))
FIELDS = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "name", "pid", "tid", "cat", "ts", "dur"},
    "C": {"ph", "name", "pid", "tid", "ts", "args"},
    "s": {"ph", "name", "pid", "tid", "cat", "id", "ts"},
    "f": {"ph", "name", "pid", "tid", "cat", "id", "bp", "ts"},
}


def need(condition, message):
    if not condition:
        sys.exit(f"error: {message}")


def nanoseconds(value):
    """Times are microseconds with three digits behind the point."""
    need(isinstance(value, (int, float)) and value >= 0, f"no time: {value!r}")
    return round(value * 1000)


lanes, slices, flows, counters = {}, collections.defaultdict(list), collections.defaultdict(dict), []
for event in trace["traceEvents"]:
    phase = event.get("ph")
    need(phase in FIELDS, f"unknown phase in {event}")
    keys = set(event) - ({"args"} if phase == "X" else set())
    need(keys == FIELDS[phase], f"fields {sorted(event)} of phase {phase}")
    need(isinstance(event["pid"], int) and isinstance(event["tid"], int), f"ids of {event}")
    if phase == "M":
        need(event["name"] in ("process_name", "thread_name", "thread_sort_index"), f"metadata {event['name']}")
        if event["name"] == "thread_name":
            lanes[event["tid"]] = event["args"]["name"]
    elif phase == "X":
        start = nanoseconds(event["ts"])
        slices[event["tid"]].append((start, start + nanoseconds(event["dur"]), event["name"]))
    elif phase == "C":
        counters.append((nanoseconds(event["ts"]), event["args"]["bytes"]))
    else:
        need(phase not in flows[event["id"]], f"two ends of flow {event['id']}")
        flows[event["id"]][phase] = (event["tid"], nanoseconds(event["ts"]))
        need(phase == "s" or event["bp"] == "e", "a flow that ends at the next slice")

need(set(slices) <= set(lanes), f"slices on lanes without a name: {set(slices) - set(lanes)}")
for lane, found in slices.items():
    for (_, end, name), (start, _, other) in zip(found, found[1:]):
        need(end <= start, f"{lanes[lane]}: '{name}' overlaps '{other}'")


def inside(lane, time):
    return any(start <= time <= end for start, end, _ in slices[lane])


for number, ends in flows.items():
    need(set(ends) == {"s", "f"}, f"flow {number} has no {set('sf') - set(ends)}")
    need(ends["s"][1] <= ends["f"][1], f"flow {number} ends before it starts")
    need(ends["s"][0] != ends["f"][0], f"flow {number} stays on its lane")
    for phase, (lane, time) in ends.items():
        need(inside(lane, time), f"end {phase} of flow {number} is in no slice")

times = [time for time, _ in counters]
need(times == sorted(set(times)) and times[0] == 0, "the counter's times do not rise from 0")
peak = max(value for _, value in counters)
need(0 < peak <= stats["arena_bytes"], f"live bytes {peak} of an arena of {stats['arena_bytes']}")
need(peak >= 0.8 * stats["max_live_bytes"], f"live bytes {peak}, the plan says {stats['max_live_bytes']}")
step = trace["otherData"]["predicted_step_ns"]
need(abs(step / 1000 - stats["step_us"]) <= 0.02 * stats["step_us"],
     f"a step of {step} ns, the plan says {stats['step_us']} us")
print("lanes", *(lanes[lane] for lane in sorted(lanes)))
print("slices", sum(map(len, slices.values())), "flows", len(flows), "counters", len(counters))
