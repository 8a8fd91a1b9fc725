"""What the end-to-end tests share: compile, run, read tensors, compare, count.

Every test takes --bin=DIR (where gtp-opt and gtp-run are), prints a table and
ends with `N passed, N failed`. Standard library only.
"""
import argparse
import array
import json
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# A folder a model: config, weights, tokens, labels, and what PyTorch made of them.
TORCH = HERE / "Inputs" / "torch"


class Failed(Exception):
    pass


class Tools:
    """The two programs, with a scratch directory."""

    def __init__(self, bin_dir, scratch):
        self.bin = pathlib.Path(bin_dir).resolve()
        self.scratch = pathlib.Path(scratch)
        self.plans = {}

    def call(self, program, *arguments, check=True, timeout=600):
        """Runs one of the two, or a program by its whole path."""
        command = [str(self.bin / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise Failed(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr[-3000:]}")
        return done

    def config(self, name, fields):
        """The path of a config.json of that name."""
        path = self.scratch / f"{name}.json"
        path.write_text(json.dumps(fields))
        return path

    def compile(self, config, *options, f32=True):
        """The plan of a config (a path), compiled once for each set of options."""
        options = list(options) + (["--dtype=f32"] if f32 else [])
        key = (str(config), *options)
        if key not in self.plans:
            path = self.scratch / f"{len(self.plans)}.gtpplan"
            self.call("gtp-opt", config, *options, "--emit=plan", "-o", path)
            self.plans[key] = path
        return self.plans[key]

    def run(self, plan, *options, backend="host"):
        """The lines of --metrics, one dictionary a step."""
        metrics = self.scratch / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        self.call("gtp-run", plan, f"--backend={backend}", f"--metrics={metrics}", *options)
        return [json.loads(line) for line in metrics.read_text().splitlines()]


def ranks(mesh):
    """How many ranks "dp=2,gtp=3" has."""
    return math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))


def torch_models():
    return sorted(TORCH.iterdir())


def reference_options(model):
    """What gtp-opt is told of a model of TORCH, beside its config."""
    path = model / "options.txt"
    return path.read_text().split() if path.exists() else []


def reference_data(model, labels="labels.bin", weights=None):
    """What gtp-run is told, for the step of which PyTorch has loss and gradients."""
    return [f"--data={model / 'tokens.bin'}", "--token-bits=16", f"--labels={model / labels}",
            f"--weights={weights or model / 'weights.safetensors'}", "--seed=3"]


def compare_with_torch(step, grads, reference, trained=lambda name: True):
    """Holds a step's metrics and its dumped gradients, those of parameters that are `trained`,
    against a reference file; a text for the table, and the gradients expected."""
    expected = read_safetensors(reference)
    loss = expected.pop("loss")[1][0]
    if not abs(step["loss"] - loss) <= 1e-4 * abs(loss):
        raise Failed(f"loss {step['loss']}, expected {loss}")
    expected = {name: tensor for name, tensor in expected.items() if trained(name)}
    worst, name = compare_tensors(read_safetensors(grads), expected, 1e-4)
    return f"loss {step['loss']:.6f} (torch {loss:.6f}), worst gradient {worst:.1e} {name}", expected


def read_safetensors(path):
    """{name: (shape, array of float32)}"""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        if info["dtype"] != "F32":
            raise Failed(f"{path}: {name} is {info['dtype']}, expected F32")
        begin, end = info["data_offsets"]
        values = array.array("f")
        values.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (tuple(info["shape"]), values)
    return tensors


def write_safetensors(path, tensors):
    """{name: (shape, array of float32)} to a file."""
    header, end = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + 4 * len(values)]}
        end += 4 * len(values)
    text = json.dumps(header).encode()
    data = b"".join(values.tobytes() for _, values in tensors.values())
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + data)


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def distance(a, b):
    return math.sqrt(math.fsum((x - y) * (x - y) for x, y in zip(a, b)))


def compare_tensors(found, expected, tolerance):
    """The worst ‖a−b‖/‖b‖ of all tensors, as (ratio, name); raises on missing names or
    other shapes. Tensors below 1e-6 of the global norm are compared at that scale."""
    if set(found) != set(expected):
        raise Failed(f"tensors differ: only found {sorted(set(found) - set(expected))}, "
                     f"only expected {sorted(set(expected) - set(found))}")
    scale = 1e-6 * math.sqrt(math.fsum(norm(v) ** 2 for _, v in expected.values()))
    worst = (0.0, "")
    for name, (shape, values) in expected.items():
        if found[name][0] != shape:
            raise Failed(f"{name}: shape {found[name][0]}, expected {shape}")
        gap = distance(found[name][1], values)
        if math.isnan(gap):
            raise Failed(f"{name}: not a number")
        size = max(norm(values), scale)
        ratio = gap / size if size else (math.inf if gap else 0.0)
        worst = max(worst, (ratio, name))
    if worst[0] > tolerance:
        raise Failed(f"{worst[1]}: off by {worst[0]:.3g}, at most {tolerance:g} allowed")
    return worst


class Report:
    """Rows of a table, each passed or failed."""

    def __init__(self, title):
        self.passed = self.failed = 0
        print(title, flush=True)

    def case(self, name, check):
        """Runs `check`, which returns a text for the table or raises."""
        try:
            text = check()
            self.passed += 1
            print(f"  ok    {name:<58} {text or ''}", flush=True)
        except (Failed, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
            self.failed += 1
            print(f"  FAIL  {name:<58} {error}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


def main(title, body, extra=None):
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--bin", required=True, help="directory of gtp-opt and gtp-run")
    if extra:
        extra(parser)
    arguments = parser.parse_args()
    report = Report(title)
    with tempfile.TemporaryDirectory() as scratch:
        body(Tools(arguments.bin, scratch), report, arguments)
    report.finish()
