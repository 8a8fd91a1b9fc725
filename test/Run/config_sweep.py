#!/usr/bin/env python3
"""Every config of test/Import/Inputs, compiled for many degrees with the known number of
parameters, or refused with the documented sentence."""
import concurrent.futures
import json
import time

import gtp

INPUTS = gtp.HERE.parent / "Import" / "Inputs"
DEGREES = (1, 2, 3, 8, 64, 512)
FEWER_DEGREES = (1, 3, 8, 64)  # of families other than these
ALL_DEGREES_OF = ("llama", "qwen3", None)

# Parameters, a tied weight once. Published: the number of elements of the checkpoint (its
# safetensors metadata, or numel() over the parameters of the loaded transformers model) as
# the model's card and many projects state it. Derived: nobody publishes this one, so it
# is the sum of transformers' shapes alone. Every number must equal that sum too.
PUBLISHED, DERIVED = "published", "derived from shapes"
COMPILED = {
    "gemma-2-2b-it.json": (2_614_341_888, PUBLISHED),
    "gpt2.json": (124_439_808, PUBLISHED),
    "llama-2-7b-hf.truncated-3-layers.json": (869_298_176, DERIVED),
    "llama-3.1-405b.shapes-only.json": (405_853_388_800, PUBLISHED),
    "llama-3.1-70b-instruct.json": (70_553_706_496, PUBLISHED),
    "llama-3.1-8b.json": (8_030_261_248, PUBLISHED),
    "llama-3.2-1b-instruct.json": (1_235_814_400, PUBLISHED),
    "mistral-7b-v0.3.json": (7_248_023_552, PUBLISHED),
    "olmo-2-1124-7b.json": (7_298_617_344, PUBLISHED),
    "phi-3-mini-4k-instruct.json": (3_821_079_552, PUBLISHED),
    "pythia-1b.json": (1_011_781_632, PUBLISHED),
    "qwen2.5-0.5b-instruct.json": (494_032_768, PUBLISHED),
    "qwen2.5-7b.json": (7_615_616_512, PUBLISHED),
    "qwen3-0.6b.json": (596_049_920, PUBLISHED),
    "qwen3-8b.json": (8_190_735_360, PUBLISHED),
    "smollm2-135m-instruct.json": (134_515_008, PUBLISHED),
    "tiny-random-llama.json": (1_032_272, DERIVED),
    "tinyllama-1.1b-chat-v1.0.json": (1_100_048_384, PUBLISHED),
}

SUPPORTED = ("supported: gemma2, gpt2, gpt_neox, llama, mistral, olmo2, phi3, qwen2, qwen3")
REFUSED = {
    "deepseek-v3.json": "deepseek_v3",
    "gpt-oss-20b.json": "gpt_oss",
    "mamba2-130m.json": None,  # names no family
    "mixtral-8x7b-v0.1.json": "mixtral",
    "nemotron-3-nano-30b-a3b.json": "nemotron_h",
    "nemotron-h-8b-base-8k.json": "nemotron_h",
    "qwen3-30b-a3b.json": "qwen3_moe",
    "qwen3-next-80b-a3b.json": "qwen3_next",
}


def sum_of_shapes(config):
    """Elements of all weights of the family's causal language model in transformers."""
    if config.get("model_type") in ("gpt2", "gpt_neox"):
        return sum_of_shapes_with_biases(config)
    family = config.get("model_type")
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or hidden // heads
    queries, keys = heads * head_dim, kv_heads * head_dim
    q_and_o = 2 * queries * hidden
    k_and_v = 2 * keys * hidden
    mlp = 3 * config["intermediate_size"] * hidden
    norms = {"gemma2": 4}.get(family, 2) * hidden
    # q_norm and k_norm; the biases of q, k and v.
    norms += {"qwen3": 2 * head_dim, "olmo2": queries + keys}.get(family, 0)
    biases = queries + 2 * keys if family == "qwen2" else 0
    tied = config.get("tie_word_embeddings", family == "gemma2")
    embeddings = config["vocab_size"] * hidden * (1 if tied else 2)
    layer = q_and_o + k_and_v + mlp + norms + biases
    return embeddings + hidden + config["num_hidden_layers"] * layer


def sum_of_shapes_with_biases(config):
    if config["model_type"] == "gpt2":
        hidden, layers = config["n_embd"], config["n_layer"]
        inner = 4 * hidden
        embeddings = (config["vocab_size"] + config["n_positions"]) * hidden
    else:
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        inner = config["intermediate_size"]
        embeddings = 2 * config["vocab_size"] * hidden
    norm = 2 * hidden
    attention = 4 * hidden * (hidden + 1)
    mlp = 2 * inner * hidden + inner + hidden
    return embeddings + norm + layers * (2 * norm + attention + mlp)


def degrees_of(name):
    family = json.loads((INPUTS / name).read_text()).get("model_type")
    return DEGREES if family in ALL_DEGREES_OF else FEWER_DEGREES


def compiles(tools, name, degree):
    parameters, source = COMPILED[name]
    expected = sum_of_shapes(json.loads((INPUTS / name).read_text()))
    if parameters != expected:
        raise gtp.Failed(f"the table says {parameters}, the shapes sum to {expected}")
    plan = tools.scratch / f"{name}.{degree}.gtpplan"
    stats = tools.scratch / f"{name}.{degree}.json"
    begin = time.monotonic()
    tools.call("gtp-opt", INPUTS / name, f"--mesh=gtp={degree}", "--emit=plan", "-o", plan,
               f"--stats={stats}")
    seconds = time.monotonic() - begin
    found = json.loads(stats.read_text())
    if found["parameters"] != parameters or found["ranks"] != degree:
        raise gtp.Failed(f"{found['parameters']} parameters on {found['ranks']} ranks, expected "
                         f"{parameters} on {degree}")
    size = plan.stat().st_size
    plan.unlink()
    return f"{parameters} parameters ({source}), {seconds:.1f} s, plan {size} bytes"


def refused(tools, name):
    family = REFUSED[name]
    sentence = (f"error: model family '{family}' is not supported; {SUPPORTED}" if family else
                "error: the config names no model family: it has neither 'model_type' nor "
                f"'architectures'; {SUPPORTED}")
    plan = tools.scratch / f"{name}.gtpplan"
    done = tools.call("gtp-opt", INPUTS / name, "--emit=plan", "-o", plan, check=False)
    if done.returncode != 1 or sentence not in done.stderr or plan.exists():
        raise gtp.Failed(f"exit {done.returncode}, expected 1 and: {sentence}\n{done.stderr[-500:]}")
    if done.stderr.count("error:") != 1:
        raise gtp.Failed(f"expected one error\n{done.stderr[-500:]}")
    return sentence.removeprefix("error: ")


def listed():
    found = {path.name for path in INPUTS.glob("*.json")}
    missing = found ^ (set(COMPILED) | set(REFUSED))
    if missing:
        raise gtp.Failed(f"neither list has, or no file is: {sorted(missing)}")
    return f"{len(COMPILED)} compiled, {len(REFUSED)} refused"


def body(tools, report, arguments):
    report.case("every config is in one of the lists", listed)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        cases = [(f"{name} gtp={degree}", pool.submit(compiles, tools, name, degree))
                 for name in COMPILED for degree in degrees_of(name)]
        cases += [(name, pool.submit(refused, tools, name)) for name in REFUSED]
        for name, future in cases:
            report.case(name, future.result)


if __name__ == "__main__":
    gtp.main("Configs", body)
