"""Peer baseline: Llama-style training step with PyTorch FSDP2 (fully_shard) + torch.compile.

torchrun --nproc-per-node N fsdp2_llama.py --layers 8 --seq 4096 --batch 1 [--mode fsdp|single]
Prints one JSON line: the time of each step, memory, versions. Attention is cuDNN's, whose
gradient is not deterministic.
"""
import argparse, json, math, os, time
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy

p = argparse.ArgumentParser()
p.add_argument("--layers", type=int, default=8)
p.add_argument("--hidden", type=int, default=4096)
p.add_argument("--ffn", type=int, default=14336)
p.add_argument("--heads", type=int, default=32)
p.add_argument("--kv", type=int, default=8)
p.add_argument("--vocab", type=int, default=128256)
p.add_argument("--seq", type=int, default=4096)
p.add_argument("--batch", type=int, default=1)
p.add_argument("--steps", type=int, default=32)
p.add_argument("--warmup", type=int, default=5)
p.add_argument("--mode", default="fsdp")
p.add_argument("--no-compile", action="store_true")
p.add_argument("--compile-mode", default="default")
p.add_argument("--sdpa", default="cudnn")
p.add_argument("--reshard", type=int, default=1)
p.add_argument("--symm", action="store_true", help="symmetric-memory (copy-engine) all-gather where torch has it")
p.add_argument("--prefetch", type=int, default=0, help="explicit forward/backward prefetch distance in blocks")
p.add_argument("--reduce-dtype", choices=["bf16", "f32"], default="bf16", help="of gradients on the wire")
p.add_argument("--clip-norm", type=float, default=0, help="global norm that gradients are clipped to; 0: off")
p.add_argument("--lr", type=float, default=1e-4)
p.add_argument("--betas", default="0.9,0.95")
p.add_argument("--weight-decay", type=float, default=0)
a = p.parse_args()

rank = int(os.environ.get("RANK", 0)); world = int(os.environ.get("WORLD_SIZE", 1))
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
if world > 1: dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

class RMSNorm(nn.Module):
    def __init__(s, d): super().__init__(); s.w = nn.Parameter(torch.ones(d))
    def forward(s, x): return F.rms_norm(x, (x.size(-1),), s.w, 1e-5)

class Block(nn.Module):
    def __init__(s):
        super().__init__()
        h, kv, hd = a.hidden, a.kv, a.hidden // a.heads
        s.n1, s.n2 = RMSNorm(h), RMSNorm(h)
        s.q = nn.Linear(h, h, bias=False); s.k = nn.Linear(h, kv*hd, bias=False); s.v = nn.Linear(h, kv*hd, bias=False)
        s.o = nn.Linear(h, h, bias=False)
        s.g = nn.Linear(h, a.ffn, bias=False); s.u = nn.Linear(h, a.ffn, bias=False); s.d = nn.Linear(a.ffn, h, bias=False)
        s.hd = hd
    def forward(s, x, cos, sin):
        B, T, _ = x.shape
        y = s.n1(x)
        def rope(t):
            t1, t2 = t.chunk(2, -1); return torch.cat([t1*cos - t2*sin, t2*cos + t1*sin], -1)
        q = rope(s.q(y).view(B, T, a.heads, s.hd).transpose(1, 2)); k = rope(s.k(y).view(B, T, a.kv, s.hd).transpose(1, 2))
        v = s.v(y).view(B, T, a.kv, s.hd).transpose(1, 2)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=a.kv != a.heads)
        x = x + s.o(o.transpose(1, 2).reshape(B, T, -1))
        y = s.n2(x)
        return x + s.d(F.silu(s.g(y)) * s.u(y))

class Llama(nn.Module):
    def __init__(s):
        super().__init__()
        s.emb = nn.Embedding(a.vocab, a.hidden)
        s.blocks = nn.ModuleList([Block() for _ in range(a.layers)])
        s.norm = RMSNorm(a.hidden); s.head = nn.Linear(a.hidden, a.vocab, bias=False)
    def forward(s, t, cos, sin):
        x = s.emb(t)
        for b in s.blocks: x = b(x, cos, sin)
        return s.head(s.norm(x))

with torch.device("meta"): model = Llama()
nparam = sum(q.numel() for q in model.parameters())
mp = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16 if a.reduce_dtype == "bf16" else torch.float32)
if not a.no_compile:
    for b in model.blocks: b.compile(mode=a.compile_mode) if a.compile_mode != "default" else b.compile()
if a.mode == "fsdp":
    mesh = init_device_mesh("cuda", (world,))
    for b in model.blocks: fully_shard(b, mesh=mesh, mp_policy=mp, reshard_after_forward=bool(a.reshard))
    fully_shard([model.norm, model.head], mesh=mesh, mp_policy=mp, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=mp)
    if a.prefetch:
        for i, b in enumerate(model.blocks):
            b.set_modules_to_forward_prefetch(list(model.blocks[i+1:i+1+a.prefetch])); b.set_modules_to_backward_prefetch(list(reversed(model.blocks[max(0,i-a.prefetch):i])))
    if a.symm:
        for m in [model, *model.blocks]: m.set_symm_mem_for_comm()
    model.to_empty(device="cuda")
else:
    model.to_empty(device="cuda")
with torch.no_grad():
    for q in model.parameters(): q.normal_(0, 0.02) if q.dim() > 1 else q.fill_(1.0)
hd = a.hidden // a.heads
inv = 1.0 / (500000.0 ** (torch.arange(0, hd // 2, device="cuda").float() * 2 / hd))
ang = torch.outer(torch.arange(a.seq, device="cuda").float(), inv)
cos, sin = ang.cos().bfloat16()[None, None], ang.sin().bfloat16()[None, None]
opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=tuple(map(float, a.betas.split(","))), eps=1e-8,
                        weight_decay=a.weight_decay, fused=True)
from torch.nn.attention import sdpa_kernel, SDPBackend
bk = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[a.sdpa]
def loss_fn(logits, y): return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())
if not a.no_compile: loss_fn = torch.compile(loss_fn)
g = torch.Generator(device="cuda").manual_seed(rank)
x = torch.randint(0, a.vocab, (a.batch, a.seq + 1), device="cuda", generator=g)
def step():
    opt.zero_grad(set_to_none=True)
    with sdpa_kernel([bk, SDPBackend.FLASH_ATTENTION]):
        if a.mode == "fsdp": logits = model(x[:, :-1], cos, sin); loss = loss_fn(logits, x[:, 1:]); loss.backward()
        else:
            with torch.autocast("cuda", torch.bfloat16): logits = model(x[:, :-1], cos, sin)
            loss = loss_fn(logits, x[:, 1:]); loss.backward()
    if a.clip_norm: torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip_norm)
    opt.step(); return loss
t0 = time.time()
for _ in range(a.warmup): l = step()
torch.cuda.synchronize(); tc = time.time() - t0
torch.cuda.reset_peak_memory_stats()
ts, ends = [], [time.perf_counter()]
for _ in range(a.steps):
    s0, s1 = torch.cuda.Event(True), torch.cuda.Event(True)
    s0.record(); l = step(); s1.record(); torch.cuda.synchronize(); ts.append(s0.elapsed_time(s1))
    ends.append(time.perf_counter())
wall = [(end - start) * 1e3 for start, end in zip(ends, ends[1:])]
free, total = torch.cuda.mem_get_info()
if rank == 0:
    print(json.dumps(dict(
        mode=a.mode, world=world, compile=not a.no_compile and a.compile_mode, attention=f"{a.sdpa}, fast",
        seq=a.seq, batch=a.batch, reduce_dtype=a.reduce_dtype, clip_norm=a.clip_norm, reshard=a.reshard,
        parameters=nparam, step_ms=ts, wall_ms=wall, device_bytes=total - free, allocated_bytes=torch.cuda.max_memory_allocated(),
        reserved_bytes=torch.cuda.max_memory_reserved(), warm_s=tc, loss=l.item(), gpu=torch.cuda.get_device_name(),
        versions=f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, "
                 f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}")), flush=True)
if world > 1: dist.destroy_process_group()
