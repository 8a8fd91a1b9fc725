"""Each kernel of a plan has a duration that a profile has measured for that kernel.

check_measured.py PROFILE TRACE: the trace is of the plan that was made with the profile."""
import json
import sys

measured = json.load(open(sys.argv[1]))["measured"]
events = json.load(open(sys.argv[2]))["traceEvents"]
times = {}
for entry in measured["kernels"]:
    times.setdefault(entry["kernel"], set()).add(entry["alone_ns"])
kernels = [e for e in events if e["ph"] == "X" and e["cat"] == "kernel" and e["pid"] == 1]
kernels = [e for e in kernels if e["name"].split()[0] not in ("copy", "fill")]
other = {e["name"] for e in kernels if e["args"]["predicted_ns"] not in times.get(e["name"].split()[0], ())}
print(f"{len(kernels)} kernels, {len(other)} with another duration", *sorted(other))
