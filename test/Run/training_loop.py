#!/usr/bin/env python3
"""What gtp-run does around the steps of a compiled plan: schedules, steps that
are not finite, an early end."""
import array
import json
import math
import random
import signal
import struct
import subprocess
import time

import gtp
from gtp import Failed
from philox import philox4x32, sample_offsets

CONFIG = {
    "model_type": "llama", "vocab_size": 64, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
SEQUENCE = 12


def require(condition, text):
    if not condition:
        raise Failed(text)


def read_records(path):
    """The events of a file, checksums checked."""
    def masked_crc32c(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    data = path.read_bytes()
    while data:
        size, = struct.unpack("<Q", data[:8])
        event = data[12:12 + size]
        require(data[8:12] == struct.pack("<I", masked_crc32c(data[:8])), "checksum of a length")
        require(data[12 + size:16 + size] == struct.pack("<I", masked_crc32c(event)),
                "checksum of an event")
        yield event
        data = data[16 + size:]


def read_fields(message):
    """(number, value) of each field of a protobuf message; all lengths are below 128."""
    while message:
        number, wire = message[0] >> 3, message[0] & 7
        size, start = {0: (1, 1), 1: (8, 1), 5: (4, 1), 2: (message[1], 2)}[wire]
        yield number, message[start:start + size]
        message = message[start + size:]


def read_scalars(event):
    """{tag: value} of an event with its step, or None of one without scalars."""
    fields = dict(read_fields(event))
    if 5 not in fields:
        return None
    scalars = {"step": fields[2][0]}
    for _, value in read_fields(fields[5]):
        parts = dict(read_fields(value))
        scalars[parts[1].decode()], = struct.unpack("<f", parts[2])
    return scalars


class Suite:
    def __init__(self, tools):
        self.tools = tools
        config = tools.config("config", CONFIG)
        self.plan = tools.compile(config, "--mesh=dp=2,gtp=2", f"--seq={SEQUENCE}",
                                  "--global-batch=8", "--clip-norm=1")
        self.random = random.Random(7)
        self.data = self.write_ids("ids", [self.random.randrange(60) for _ in range(3000)])

    def path(self, name):
        return self.tools.scratch / name

    def write_ids(self, name, ids):
        path = self.path(name)
        path.write_bytes(array.array("H", ids).tobytes())
        return path

    def run(self, *options, data=None):
        data = [f"--data={self.data}", "--token-bits=16"] if data is None else data
        return self.tools.run(self.plan, *data, *options)

    def schedule(self):
        """The rates of the metrics are those of the formula in docs/running.md."""
        steps, warmup, peak, least = 9, 3, 0.01, 0.001
        for decay in ("const", "cosine", "linear"):
            value = f"{decay}:{warmup}" + ("" if decay == "const" else f",{least}")
            found = [m["lr"] for m in self.run(f"--steps={steps}", f"--lr={peak}",
                                               f"--lr-schedule={value}")]
            for step, rate in enumerate(found, 1):
                p = (step - warmup) / (steps - warmup)
                expected = {"const": peak,
                            "cosine": least + (peak - least) * (1 + math.cos(math.pi * p)) / 2,
                            "linear": peak + (least - peak) * p}[decay]
                if step <= warmup:
                    expected = peak * step / warmup
                require(math.isclose(rate, expected, rel_tol=1e-12),
                        f"{value}: step {step} has {rate}, expected {expected}")
        # A rate of zero is a step that moves nothing.
        dumps = []
        for steps in (3, 4):
            dumps.append(self.path(f"w{steps}"))
            self.run("--steps=4" if steps == 4 else "--steps=0", "--lr=0",
                     "--lr-schedule=cosine:2,0", f"--dump-weights={dumps[-1]}")
        require(dumps[0].read_bytes() == dumps[1].read_bytes(), "a rate of 0 changed weights")
        return "const, cosine, linear"

    def mixture(self):
        """Two files against one that holds, at the places of the formula, what they hold:
        the same losses, bit for bit."""
        weights, seed, steps, batch = (3.0, 1.5), 11, 3, 8
        texts = [[self.random.randrange(60) for _ in range(size)] for size in (500, 90)]
        files = [self.write_ids(f"mix{i}", text) for i, text in enumerate(texts)]
        counts = [0, 0]
        for step in range(1, steps + 1):
            samples, labels = [], []
            for sample in range(batch):
                words = philox4x32(seed, (sample, step))
                u = ((words[2] | words[3] << 32) >> 11) / 2**53
                which = 0 if u * sum(weights) < weights[0] else 1
                counts[which] += 1
                offset = (words[0] | words[1] << 32) % (len(texts[which]) - SEQUENCE)
                samples.append(texts[which][offset:offset + SEQUENCE])
                labels.append(texts[which][offset + 1:offset + SEQUENCE + 1])
            found = self.run(f"--steps={step}", f"--seed={seed}", "--lr=0", data=[
                "--token-bits=16", *(f"--data={f}:{w}" for f, w in zip(files, weights))])
            # One file, as long as it takes for each sample of this step to be where it falls.
            size = 100003
            text, label = [0] * size, [-100] * size
            for sample, (tokens, targets) in enumerate(zip(samples, labels)):
                offset = sample_offsets(seed, step, sample + 1, size - SEQUENCE)[-1]
                text[offset:offset + SEQUENCE] = tokens
                label[offset + 1:offset + SEQUENCE + 1] = targets
            label_file = self.path("mix-labels")
            label_file.write_bytes(array.array("i", label).tobytes())
            expected = self.run(f"--steps={step}", f"--seed={seed}", "--lr=0", data=[
                "--token-bits=16", f"--data={self.write_ids('one', text)}",
                f"--labels={label_file}"])
            require(found[-1]["loss"] == expected[-1]["loss"],
                    f"step {step}: loss {found[-1]['loss']}, expected {expected[-1]['loss']}")
        require(all(counts), "only one of the files was drawn")
        return f"{counts[0]} and {counts[1]} samples"

    def dataset(self):
        """A Megatron-LM dataset trains as the file of its ids, for every type of ids."""
        ids = [self.random.randrange(60) for _ in range(700)]
        expected = self.run("--steps=3", data=[f"--data={self.write_ids('raw', ids)}",
                                               "--token-bits=16"])
        lengths = [100, 0, 250, 350]
        for code, letter in {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H"}.items():
            text = array.array(letter, ids)
            index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), 3)
            index += struct.pack("<4i", *lengths)
            index += struct.pack("<4q", *(sum(lengths[:i]) * text.itemsize for i in range(4)))
            index += struct.pack("<3q", 0, 1, 4)
            self.path("set.idx").write_bytes(index)
            self.path("set.bin").write_bytes(text.tobytes())
            found = self.run("--steps=3", data=[f"--data={self.path('set.idx')}"])
            require([m["loss"] for m in found] == [m["loss"] for m in expected],
                    f"type {code}: losses differ from those of the raw ids")
        self.path("set.bin").write_bytes(text.tobytes()[:-1])
        failed = self.tools.call("gtp-run", self.plan, f"--data={self.path('set.idx')}", check=False)
        require(failed.returncode == 1 and "the 700 tokens of its index" in failed.stderr,
                failed.stderr)

    def tensorboard(self):
        """The scalars of the events are those of the metrics."""
        folder = self.path("board")
        metrics = self.run("--steps=3", "--lr-schedule=linear:0,0", f"--tensorboard={folder}")
        found = [scalars for scalars in map(read_scalars, read_records(*folder.iterdir())) if scalars]
        for step, (scalars, line) in enumerate(zip(found, metrics, strict=True), 1):
            require(scalars.pop("step") == step, f"event {step} is of another step")
            for tag, value in scalars.items():
                require(math.isclose(value, line[tag], rel_tol=1e-6, abs_tol=1e-12),
                        f"step {step}: {tag} is {value}, expected {line[tag]}")
            require(sorted(scalars) == ["grad_norm", "loss", "lr"], f"scalars {sorted(scalars)}")
        return f"{len(found)} events"

    def skipped_step(self):
        """Token 63 has an embedding of NaN, and is in few samples: their steps change
        nothing, on no rank, and the others train."""
        initial = self.path("initial")
        self.run("--steps=0", f"--dump-weights={initial}")
        bytes_ = bytearray(initial.read_bytes())
        size = int.from_bytes(bytes_[:8], "little")
        begin, end = json.loads(bytes_[8:8 + size])["model.embed_tokens.weight"]["data_offsets"]
        row = (end - begin) // CONFIG["vocab_size"]
        bytes_[8 + size + end - row:8 + size + end] = b"\xff" * row
        weights = self.path("poisoned")
        weights.write_bytes(bytes_)
        ids = [self.random.randrange(60) for _ in range(3000)]
        ids[1500] = 63
        data = [f"--data={self.write_ids('rare', ids)}", "--token-bits=16"]
        after = self.path("after")
        found = self.run("--steps=60", "--lr=0.01", f"--weights={weights}",
                         f"--dump-weights={after}", data=data)
        skipped = [m["step"] for m in found if m.get("skipped")]
        require(0 < len(skipped) < 20, f"skipped steps {skipped}")
        require(all((m["loss"] is None) == (m["step"] in skipped) for m in found),
                "a loss beside the NaN is not finite")
        for name, (shape, values) in gtp.read_safetensors(after).items():
            bad = sum(map(math.isnan, values))
            expected = shape[1] if name == "model.embed_tokens.weight" else 0
            require(bad == expected, f"{name}: {bad} of its elements are not a number")
        # All data is bad: the run ends, and names a gradient.
        data[0] = f"--data={self.write_ids('bad', [63] * 100)}"
        failed = self.tools.call("gtp-run", self.plan, *data, "--steps=9", "--max-nonfinite=2",
                                 f"--weights={weights}", check=False)
        for text in ("step 2: the loss is not a number", "in each step from 1",
                     "gradients are not finite, first that of 'model.embed_tokens.weight'"):
            require(failed.returncode == 1 and text in failed.stderr, failed.stderr)
        return f"{len(skipped)} of {len(found)} skipped"

    def sigterm(self):
        """The dumps of a run that was stopped are those of a run of as many steps."""
        metrics, stopped, whole = (self.path(n) for n in ("m", "stopped", "whole"))
        command = [self.tools.bin / "gtp-run", self.plan, f"--data={self.data}",
                   "--token-bits=16", "--steps=1000000", f"--metrics={metrics}",
                   f"--dump-weights={stopped}"]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as run:
            while run.poll() is None and not (metrics.exists() and metrics.stat().st_size):
                time.sleep(0.01)
            run.send_signal(signal.SIGTERM)
            output = run.communicate(timeout=60)[0]
        steps = len(metrics.read_text().splitlines())
        require(run.returncode == 0 and f"after step {steps} of 1000000\n" in output,
                f"exit {run.returncode}, {steps} steps: {output}")
        self.run(f"--steps={steps}", f"--dump-weights={whole}")
        require(stopped.read_bytes() == whole.read_bytes(), "the dumps differ")
        return f"after {steps} steps"


def body(tools, report, _):
    suite = Suite(tools)
    report.case("learning-rate schedules", suite.schedule)
    report.case("several files with weights", suite.mixture)
    report.case("a Megatron-LM dataset", suite.dataset)
    report.case("events for TensorBoard", suite.tensorboard)
    report.case("a step that is not finite is skipped", suite.skipped_step)
    report.case("SIGTERM", suite.sigterm)


if __name__ == "__main__":
    gtp.main("Training loop", body)
