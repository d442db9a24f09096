#!/usr/bin/env python3
"""Trains the demo model on generated text and writes it as GGUF.

    python models/train_demo.py            all stages (resumes from models/.cache), then --eval and --export
    python models/train_demo.py --eval     recall table, facts, sums, samples -> models/.cache/eval.json
    python models/train_demo.py --export   demo.gguf, demo-q8_0.gguf, prompts.json, README.md

Two CPU cores are enough; kill it at any time and start it again.
"""
import argparse
import functools
import json
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import jax
import jax.numpy as jnp
import optax

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import corpus
import tokenizer as tk

CACHE = Path(os.environ.get("DEMO_CACHE", HERE / ".cache"))
SEED = 20261130
D, HEADS, HD, FF, N = 64, 2, 32, 128, 40
EPS, ROPE = 1e-6, 10000.0
CTX = 2048



@dataclass(frozen=True)
class Stage:
    """One part of the training run."""
    name: str
    layers: int
    steps: int
    rows: int                 # in a batch
    length: int               # of a row, in tokens
    random_rows: float        # share of rows that repeat random tokens
    peak_rate: float
    final_rate: float
    plans: float              # share of steps that run a block of layers twice
    dense: float              # share of recall passages that are dense
    mix: tuple                # weights of the documents: stories, facts, sums, recall, chats
    pairs: float = 0.         # share of the other rows that are pairs of random tokens (pair_row)


STAGES = [
    Stage("a-induction", layers=4, steps=1057, rows=48, length=96, random_rows=.5, peak_rate=3e-3, final_rate=3e-3,
          plans=0, dense=.2, mix=corpus.MIX),
    Stage("b-recall", layers=4, steps=400, rows=48, length=96, random_rows=.12, peak_rate=3e-3, final_rate=3e-3,
          plans=0, dense=.6, mix=(.15, .06, .06, .58, .15)),
    Stage("c-pairs", layers=4, steps=700, rows=48, length=96, random_rows=.08, peak_rate=3e-3, final_rate=3e-3,
          plans=0, dense=.6, mix=(.15, .06, .06, .58, .15), pairs=.5),
    Stage("d-text", layers=4, steps=500, rows=32, length=160, random_rows=.03, peak_rate=3e-3, final_rate=1e-3,
          plans=0, dense=.3, mix=corpus.MIX),
    Stage("e-grow", layers=40, steps=85, rows=16, length=128, random_rows=0, peak_rate=1.5e-3, final_rate=1.2e-3,
          plans=.5, dense=.4, mix=(.3, .1, .1, .32, .18), pairs=.1),
    Stage("f-long", layers=40, steps=215, rows=8, length=256, random_rows=0, peak_rate=1.5e-3, final_rate=1e-4,
          plans=.5, dense=.25, mix=(.25, .07, .08, .42, .18)),
    Stage("g-polish", layers=40, steps=64, rows=8, length=256, random_rows=0, peak_rate=8e-4, final_rate=5e-5,
          plans=.7, dense=.25, mix=(.25, .07, .08, .42, .18)),
]
PLANS = [("none", None), ("(20,24)", (20, 24)), ("(33,34)", (33, 34)), ("(26,34)", (26, 34)), ("(8,16)", (8, 16)), ("(0,1)", (0, 1)),
         ("(1,2)", (1, 2)), ("(38,39)", (38, 39)), ("(39,40)", (39, 40)), ("(0,40)", (0, 40))]


def plan_index(plan, n=N):
    i, j = plan or (n, n)
    return jnp.array(list(range(j if plan else n)) + list(range(i, n)) if plan else list(range(n)))


# ---------------------------------------------------------------- model
def norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * w


def rope(x, cos, sin):                       # llama.cpp's NEOX form: halves, not pairs
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def hidden(p, toks, idx):
    """What the last layer leaves: toks [B, L] -> [B, L, D], the layers in the order of idx [n layers that run]."""
    x = p["embd"][toks]                                              # [B, L, D]
    B, L = toks.shape
    f = ROPE ** (-jnp.arange(0, HD, 2) / HD)
    ang = jnp.arange(L)[:, None] * f[None]                           # [L, HD / 2]
    cos, sin = jnp.cos(ang), jnp.sin(ang)
    mask = jnp.where(jnp.tril(jnp.ones((L, L), bool)), 0., -1e30)

    def layer(x, w):
        h = norm(x, w["attn_norm"])
        q = norm((h @ w["q"]).reshape(B, L, HEADS, HD), w["q_norm"])    # [B, L, HEADS, HD]
        k = norm(h @ w["k"], w["k_norm"])                            # [B, L, HD]: one head of keys and values
        v = h @ w["v"]                                               # [B, L, HD]
        q = rope(q, cos[:, None], sin[:, None])
        k = rope(k, cos, sin)
        s = jnp.einsum("blhd,bmd->bhlm", q, k) * HD ** -.5 + mask    # [B, HEADS, L, L]
        o = jnp.einsum("bhlm,bmd->blhd", jax.nn.softmax(s, -1), v).reshape(B, L, HEADS * HD)
        x = x + o @ w["o"]
        h = norm(x, w["ffn_norm"])
        return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], None

    layers = jax.tree.map(lambda a: a[idx], p["layers"])             # each [len(idx), ...]
    x, _ = jax.lax.scan(layer, x, layers)
    return norm(x, p["out_norm"])


def init(key, n, vocab):
    ks = iter(jax.random.split(key, 8))
    r = lambda *s, std: jax.random.normal(next(ks), s) * std
    return {"embd": r(vocab, D, std=.05), "out_norm": jnp.ones(D), "layers": {
        "attn_norm": jnp.ones((n, D)), "ffn_norm": jnp.ones((n, D)), "q_norm": jnp.ones((n, HD)), "k_norm": jnp.ones((n, HD)),
        "q": r(n, D, HEADS * HD, std=.1), "k": r(n, D, HD, std=.1), "v": r(n, D, HD, std=.1), "o": r(n, HEADS * HD, D, std=.05),
        "gate": r(n, D, FF, std=.1), "up": r(n, D, FF, std=.1), "down": r(n, FF, D, std=.05)}}


def grow(p, tok, seed):
    """4 -> 40 layers: two at each end stay, between them copies of the third that do little at first."""
    src = np.array([0, 1] + [2] * (N - 4) + [2, 3])
    rng = np.random.default_rng(seed)
    lay = {k: np.array(v)[src].copy() for k, v in p["layers"].items()}
    mid = slice(2, N - 2)
    for k in ("o", "down"):
        lay[k][mid] *= .05
    for k in ("q", "k", "v", "o", "gate", "up", "down"):
        lay[k][mid] += rng.normal(size=lay[k][mid].shape) * .02 * lay[k][mid].std()
    # Forms without a space of words that the text only has with one: the same vector, less likely everywhere.
    embd = np.array(p["embd"])
    toks = batch_tokens(tok, random.Random(seed), 16, 128, 0)[0]
    h = np.asarray(jax.jit(hidden)(p, toks, jnp.arange(4))).reshape(-1, D)
    d = h.mean(0)
    for i in range(tok.active, tok.n):
        t = tok.toks[i]
        other = tok.id.get(t[1:] if t[:1] == b" " else b" " + t)
        if other is not None and other < tok.active:
            embd[i] = embd[other] + rng.normal(size=D) * .01
        else:
            embd[i] = rng.normal(size=D) * .02
        embd[i] -= 6 * d / (d @ d)
    return {"embd": embd, "out_norm": np.array(p["out_norm"]), "layers": lay}


# ---------------------------------------------------------------- data
MARK = __import__("re").compile("([\x01\x02])([^\x00]*)\x00")
WEIGHT = {"\x01": .05, "\x02": 4.}


def encode_doc(tok, s):
    ids, w, pos = [], [], 0
    for m in MARK.finditer(s):
        for part, x in ((s[pos:m.start()], 1.), (m.group(2), WEIGHT[m.group(1)])):
            e = tok.encode(part)
            ids += e
            w += [x] * len(e)
        pos = m.end()
    e = tok.encode(s[pos:])
    return ids + e + [tk.EOT], w + [1.] * len(e) + [1.]


def pair_row(tok, r, L):
    """Pairs "key S value E" of random tokens, then the keys again in another order: the value lies two tokens
    behind its key, as in "The code of the fox is 48."; copying alone does not teach that."""
    t = lambda: r.randrange(3, tok.active)
    enc = lambda x: tok.id[x.encode()]
    m = r.randint(2, max(2, L // 12))
    keys, vals = r.sample(range(3, tok.active), m), [t() for _ in range(m)]
    if r.random() < .5:
        vals = [enc(f" {r.randint(1, 99)}") for _ in range(m)]
    A, S, E, Q = ([t()], [t()], [t()], [t()]) if r.random() < .5 else ([enc(" the")], [enc(" is")], [enc(".")], [enc("?")])
    if r.random() < .5:
        Q = S
    if r.random() < .4:
        A = []
    ids, w = [], []
    for k, v in zip(keys, vals):
        ids += A + [k] + S + [v] + E
    w = [.02] * len(ids)
    while len(ids) < L:
        i = r.randrange(m)
        ids += A + [keys[i]] + Q + [vals[i]] + E
        w += [.05] * len(A) + [.02] + [.1] + [2.] + [.1]
    return ids[:L], w[:L]


def batch_tokens(tok, r, B, L, rand, dense=.2, mix=corpus.MIX, pairs=0.):
    """Input tokens, target tokens and weights of the targets, each [B, L]."""
    corpus.DENSE = dense
    toks, wts = np.zeros((B, L + 1), np.int32), np.zeros((B, L + 1), np.float32)
    for b in range(B):
        if b < int(B * rand + r.random()):
            n = r.randint(12, L // 2)
            a = [r.randrange(3, tok.active) for _ in range(n)]
            k = (L + 1) // n + 1
            toks[b] = (a * k)[:L + 1]
            wts[b, n + 1:] = .7
            continue
        if r.random() < pairs:
            toks[b], wts[b] = pair_row(tok, r, L + 1)
            continue
        ids, w = [], []
        while len(ids) < L + 1:
            i, x = encode_doc(tok, corpus.document(r, L if not ids or r.random() < .5 else max(60, L // 2), mix))
            ids += i
            w += x
        toks[b], wts[b] = ids[:L + 1], w[:L + 1]
    return toks[:, :-1], toks[:, 1:], wts[:, 1:]


# ---------------------------------------------------------------- training
def save(path, tree, meta):
    leaves = jax.tree.leaves(tree)
    tmp = path.with_suffix(".tmp.npz")
    np.savez(tmp, meta=json.dumps(meta), **{f"l{i}": np.asarray(x) for i, x in enumerate(leaves)})
    os.replace(tmp, path)


def load(path, like):
    z = np.load(path)
    leaves, tdef = jax.tree.flatten(like)
    return jax.tree.unflatten(tdef, [jnp.asarray(z[f"l{i}"]) for i in range(len(leaves))]), json.loads(str(z["meta"]))


def get_tok():
    CACHE.mkdir(parents=True, exist_ok=True)
    f = CACHE / "vocab.json"
    if not f.exists():
        toks, active = tk.build_vocab()
        f.write_text(json.dumps({"active": active, "toks": [t.hex() for t in toks]}))
    v = json.loads(f.read_text())
    return tk.Tokenizer([bytes.fromhex(t) for t in v["toks"]], v["active"])


def optimizer(stage):
    steps, hi, lo = stage.steps, stage.peak_rate, stage.final_rate
    warm = min(100, steps // 5)
    sched = optax.join_schedules([optax.linear_schedule(hi * .05, hi, warm), optax.cosine_decay_schedule(hi, max(1, steps - warm), lo / hi)], [warm])
    return optax.chain(optax.clip_by_global_norm(1.), optax.adamw(sched, b2=.98, weight_decay=.01))


def train(until=None):
    tok = get_tok()
    log = CACHE / "log.jsonl"
    prev = None
    for si, stage in enumerate(STAGES):
        name, n, steps = stage.name, stage.layers, stage.steps
        opt = optimizer(stage)
        like = init(jax.random.PRNGKey(SEED), n, tok.n)
        done, part = CACHE / f"{name}.npz", CACHE / f"{name}.part.npz"
        if done.exists():
            prev = load(done, like)[0]
            continue
        start = 0
        if part.exists():
            (p, st), meta = load(part, (like, opt.init(like)))
            start = meta["step"]
        else:
            p = like if prev is None else prev
            if prev is not None and n != prev["layers"]["q"].shape[0]:
                p = jax.tree.map(jnp.asarray, grow(prev, tok, SEED + si))
            st = opt.init(p)
        targets = tok.active if n == 4 else tok.n       # the small model leaves out the forms it never sees

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def step(p, st, x, y, w, idx):
            def loss(p):
                h = hidden(p, x, idx)                                # [B, L, D]
                lg = h @ p["embd"][:targets].T                       # [B, L, targets]
                ww = jnp.where(y < targets, w, 0.)
                ce = optax.softmax_cross_entropy_with_integer_labels(lg, jnp.minimum(y, targets - 1))
                return (ce * ww).sum() / ww.sum()
            v, g = jax.value_and_grad(loss)(p)
            u, st = opt.update(g, st, p)
            return optax.apply_updates(p, u), st, v

        t0, last, seen, acc = time.time(), time.time(), 0, []
        for s in range(start, steps):
            r = random.Random(f"{SEED}/{name}/{s}")
            idx = plan_index(None, n)
            if r.random() < stage.plans:
                k = r.choices([4, 1, 8], [.5, .2, .3])[0]
                i = r.randint(2, N - 2 - k)
                idx = plan_index((i, i + k))
            x, y, w = batch_tokens(tok, r, stage.rows, stage.length, stage.random_rows, stage.dense, stage.mix, stage.pairs)
            p, st, v = step(p, st, x, y, w, idx)
            acc.append(float(v))
            seen += x.size
            if (s + 1) % 50 == 0 or s + 1 == steps:
                rec = {"stage": name, "step": s + 1, "loss": round(float(np.mean(acc)), 4), "tok_s": int(seen / (time.time() - t0))}
                if (s + 1) % 100 == 0 and n == 4:
                    rec["recall"] = recall_score(p, tok, n=50, length=80, nl=n)
                acc = []
                print(json.dumps(rec), flush=True)
                with log.open("a") as f:
                    f.write(json.dumps(rec) + "\n")
            if time.time() - last > 60:
                save(part, (p, st), {"step": s + 1})
                last = time.time()
        save(done, p, {"step": steps})
        part.unlink(missing_ok=True)
        prev = p
    return tok, prev


# ---------------------------------------------------------------- measuring
@jax.jit
def logits_at(p, toks, pos, idx):
    h = hidden(p, toks, idx)                                         # [B, L, D]
    return h[jnp.arange(toks.shape[0]), pos] @ p["embd"].T


def answers(p, prompts, idx, width, tok):
    """The one most likely next token of each prompt."""
    out = []
    for k in range(0, len(prompts), 25):
        part = [tok.encode(q) for q in prompts[k:k + 25]]
        x = np.zeros((25, width), np.int32)
        pos = np.zeros(25, np.int32)
        for i, e in enumerate(part):
            x[i, :len(e)] = e
            pos[i] = len(e) - 1
        out += [int(i) for i in np.asarray(logits_at(p, x, pos, idx).argmax(-1))[:len(part)]]
    return out


def recall_score(p, tok, n=100, length=200, plan=None, nl=N, prompts=None):
    prompts = prompts or corpus.held_out_prompts(n, length=length, count=lambda s: len(tok.encode(s)))
    got = answers(p, [q["prompt"] for q in prompts], plan_index(plan, nl), -(-(length + 16) // 32) * 32, tok)
    return sum(tok.toks[g] == (" " + q["answer"]).encode() for g, q in zip(got, prompts))


def rounded(p, kind):
    """Weights as a GGUF of this kind holds them."""
    import gguf
    def f(a):
        a = np.asarray(a, np.float32)
        if kind == "f16":
            return a.astype(np.float16).astype(np.float32)
        q = gguf.quants.quantize(np.ascontiguousarray(a), gguf.GGMLQuantizationType.Q8_0)
        return gguf.quants.dequantize(q, gguf.GGMLQuantizationType.Q8_0).reshape(a.shape)
    lay = {k: (v if "norm" in k else np.swapaxes(f(np.swapaxes(np.asarray(v), -1, -2)), -1, -2)) for k, v in p["layers"].items()}
    return jax.tree.map(jnp.asarray, {"embd": f(p["embd"]), "out_norm": p["out_norm"], "layers": lay})


@jax.jit
def next_logits(p, toks, n, idx):
    return hidden(p, toks, idx)[0, n - 1] @ p["embd"].T


def generate(p, tok, prompt, plan=None, n=60, temp=0., seed=0, width=None):
    ids = tok.encode(prompt)
    start = len(ids)
    idx = plan_index(plan)
    rng = np.random.default_rng(seed)
    width = width or -(-(start + n) // 64) * 64
    while len(ids) < start + n:
        x = np.zeros((1, width), np.int32)
        x[0, :len(ids)] = ids
        lg = np.asarray(next_logits(p, x, len(ids), idx), np.float64)
        if temp:
            e = np.exp((lg - lg.max()) / temp)
            t = int(rng.choice(len(lg), p=e / e.sum()))
        else:
            t = int(lg.argmax())
        if t in (tk.EOT, tk.IM_END):
            break
        ids.append(t)
    return tok.decode(ids[start:])


SAMPLE_PLANS = [None, (20, 24), (33, 34), (26, 34)]
SAMPLE_PROMPTS = ["Once upon a time", "One morning, Anna", "<|im_start|>user\nTell me a story about a fox.<|im_end|>\n<|im_start|>assistant\n",
                  "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n", "12 plus 7 is"]


def evaluate(p, tok):
    res = {"recall": {}}
    prompts = held_prompts(tok)
    for kind in ("f16", "q8_0"):
        q = rounded(p, kind)
        res["recall"][kind] = {}
        for name, plan in PLANS:
            res["recall"][kind][name] = recall_score(q, tok, plan=plan, prompts=prompts)
            print(kind, name, res["recall"][kind][name], flush=True)
    q = rounded(p, "f16")
    fresh = corpus.held_out_prompts(seed=777, count=lambda s: len(tok.encode(s)))
    res["fresh"] = {name: recall_score(q, tok, plan=plan, prompts=fresh) for name, plan in PLANS[:4]}
    print("fresh prompts", res["fresh"], flush=True)
    res["samples"] = []
    for pr in SAMPLE_PROMPTS:
        for pl in SAMPLE_PLANS:
            temps = (0., .8) if pr[0] == "O" else (0.,)
            for t in temps:
                s = generate(q, tok, pr, pl, temp=t, seed=1, width=128)
                res["samples"].append({"prompt": pr, "plan": list(pl) if pl else None, "temperature": t, "text": s})
                print(pl, t, repr(pr[-30:]), "->", s, flush=True)
    (CACHE / "eval.json").write_text(json.dumps(res, indent=1))
    return res


def held_prompts(tok):
    return corpus.held_out_prompts(count=lambda s: len(tok.encode(s)))


# ---------------------------------------------------------------- export
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def write_gguf(path, p, tok, kind, plan=None):
    """A plan writes its layers out one after another: what stock llama.cpp should answer under that plan."""
    import gguf
    idx = [int(i) for i in plan_index(plan)]
    tmp = str(path) + ".tmp"
    g = gguf.GGUFWriter(tmp, "qwen3")
    g.add_type("model")
    g.add_name("RYS Edge demo")
    g.add_description("A 40-layer model of 1.7 million parameters, trained on generated text, that tells short stories, recalls codes and shows layer-repeat plans.")
    g.add_author("RYS Edge")
    g.add_license("mit")
    g.add_string("general.size_label", "1.7M")
    g.add_file_type(gguf.LlamaFileType.MOSTLY_F16 if kind == "f16" else gguf.LlamaFileType.MOSTLY_Q8_0)
    g.add_quantization_version(2)
    g.add_context_length(CTX)
    g.add_embedding_length(D)
    g.add_block_count(len(idx))
    g.add_feed_forward_length(FF)
    g.add_head_count(HEADS)
    g.add_head_count_kv(1)
    g.add_key_length(HD)
    g.add_value_length(HD)
    g.add_rope_dimension_count(HD)
    g.add_rope_freq_base(ROPE)
    g.add_layer_norm_rms_eps(EPS)
    g.add_vocab_size(tok.n)
    texts, types = tok.gguf_tokens()
    g.add_tokenizer_model("rwkv")
    g.add_token_list(texts)
    g.add_token_types(types)
    g.add_bos_token_id(tk.EOT)
    g.add_eos_token_id(tk.IM_END)
    g.add_pad_token_id(tk.EOT)
    g.add_add_bos_token(False)
    g.add_add_eos_token(False)
    g.add_chat_template(TEMPLATE)

    def mat(name, a):
        a = np.ascontiguousarray(np.asarray(a, np.float32))
        if kind == "f16":
            g.add_tensor(name, a.astype(np.float16))
        else:
            g.add_tensor(name, gguf.quants.quantize(a, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    mat("token_embd.weight", p["embd"])
    g.add_tensor("output_norm.weight", np.asarray(p["out_norm"], np.float32))
    L = {k: np.asarray(v, np.float32) for k, v in p["layers"].items()}
    for at, i in enumerate(idx):
        b = f"blk.{at}."
        g.add_tensor(b + "attn_norm.weight", L["attn_norm"][i])
        for a, t in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output")):
            mat(b + t + ".weight", L[a][i].T)
        g.add_tensor(b + "attn_q_norm.weight", L["q_norm"][i])
        g.add_tensor(b + "attn_k_norm.weight", L["k_norm"][i])
        g.add_tensor(b + "ffn_norm.weight", L["ffn_norm"][i])
        for a in ("gate", "up", "down"):
            mat(b + f"ffn_{a}.weight", L[a][i].T)
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()
    os.replace(tmp, path)


def export(p, tok):
    write_gguf(HERE / "demo.gguf", p, tok, "f16")
    write_gguf(HERE / "demo-q8_0.gguf", p, tok, "q8_0")
    prompts = held_prompts(tok)
    (HERE / "prompts.json").write_text(json.dumps(prompts, indent=1) + "\n")
    for f in ("demo.gguf", "demo-q8_0.gguf"):
        print(f, (HERE / f).stat().st_size)
    readme(tok)


FIGURES = ("<!-- figures: written by train_demo.py -->", "<!-- end of figures -->")


def readme(tok):
    """Writes the measured figures into README.md, between the two marks."""
    res = json.loads((CACHE / "eval.json").read_text())
    log = [json.loads(x) for x in (CACHE / "log.jsonl").read_text().splitlines()]
    size = {f: (HERE / f).stat().st_size for f in ("demo.gguf", "demo-q8_0.gguf")}
    text = (HERE / "README.md").read_text()
    before, after = text.split(FIGURES[0])[0], text.split(FIGURES[1])[1]
    o = ["## Files", "", f"- `demo.gguf`: F16 matrices, F32 norms, {size['demo.gguf']:,} bytes", f"- `demo-q8_0.gguf`: Q8_0 matrices, F32 norms, {size['demo-q8_0.gguf']:,} bytes",
         "- `prompts.json`: the 100 held-out recall prompts, their answers, subjects and lengths in tokens",
         f"- Vocabulary: {tok.n:,} tokens, of which {tok.active:,} are targets in the generated text.", "", "## Training run", "", f"Seed {SEED}. AdamW (b2 .98, weight decay .01), gradient clipped at 1, cosine rate. Loss is the mean of the weighted cross-entropy (nats) over the last steps logged;",
         "the stages weigh and mix their text differently, so losses compare only inside a stage.", "", "| stage | layers | steps | rows x tokens | peak rate | loss over the first 50 steps | last logged loss (at step) |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for s in STAGES:
        r = [x for x in log if x["stage"] == s.name]
        if r:
            o.append(f"| {s.name} | {s.layers} | {s.steps} | {s.rows} x {s.length} | {s.peak_rate} | {r[0]['loss']} | {r[-1]['loss']} ({r[-1]['step']}) |")
    o += ["", f"All stages together: {sum(s.steps * s.rows * s.length for s in STAGES if any(x['stage'] == s.name for x in log)):,} tokens.", "", "## Recall", "",
          "Each of the 100 prompts of `prompts.json` is encoded, the one most likely next token (of the whole vocabulary) is taken, and it counts if it is the expected number with its space.",
          "Measured in JAX in F32 arithmetic on the weights as each file holds them (rounded to F16 or Q8_0); the numbers with llama.cpp are below.", "",
          "| plan | F16 | Q8_0 |", "| --- | --- | --- |"]
    for name, _ in PLANS:
        o.append(f"| {name} | {res['recall']['f16'][name]} | {res['recall']['q8_0'][name]} |")
    o += ["", "A second set of 100 held-out prompts (seed 777), first looked at after the last stage was done, F16: " + ", ".join(f"{k} {v}" for k, v in res["fresh"].items()) + "."]
    o += ["", "## Samples (F16)", ""]
    for s in res["samples"]:
        o += [f"- `{s['prompt'][-60:]!r}`, plan {tuple(s['plan']) if s['plan'] else 'none'}, temperature {s['temperature']}: {s['text']!r}"]
    (HERE / "README.md").write_text(before + FIGURES[0] + "\n" + "\n".join(o) + "\n" + FIGURES[1] + after)


def write_reference(p, tok):
    """What check_llama.mjs compares: encodings of generated and odd text, greedy texts of both files."""
    r = random.Random(9)
    texts = [corpus.plain(corpus.document(r, 250)) for _ in range(2000)]
    texts += ["na\u00efve caf\u00e9 \U0001f98a 12345 100 007 99 0", "  two  spaces\n\n\ttabs\r\n", "\u65e5\u672c\u8a9e \u0442\u0435\u043a\u0441\u0442", "<|im_start|> as text <|im_end|><|endoftext|>",
              "don't \"quote\" (x) a-b 3.14 $5 \\n \\x41 \x00\x01\x7f", "", "foxes Foxglove thefox the fox", " lead", "trail "]
    pools = [(32, 127), (0xa0, 0x3000), (0x1f300, 0x1f6ff)]
    texts += ["".join(chr(r.randrange(*r.choice(pools))) for _ in range(40)) for _ in range(200)]
    enc = [{"text": t, "ids": tok.encode(t), "plain": tok.encode_plain(t)} for t in texts]
    prompts = held_prompts(tok)
    gen = {}
    for kind in ("f16", "q8_0"):
        q = rounded(p, kind)
        gen[kind] = [{"prompt": h["prompt"], "n": 3, "text": generate(q, tok, h["prompt"], n=3, width=256)} for h in prompts[:20]]
        gen[kind] += [{"prompt": pr, "n": 40, "text": generate(q, tok, pr, n=40, width=128)} for pr in SAMPLE_PROMPTS]
    r, qa = random.Random(991), {}
    for name, make in (("facts", corpus.fact_qa), ("sums", corpus.sum_qa)):
        qa[name] = [{"question": q, "answer": corpus.plain(a)} for q, a in (make(r) for _ in range(200))]
    (CACHE / "reference.json").write_text(json.dumps({"tokens": enc, "greedy": gen, "chat": qa}))


def current(tok):
    """The newest weights with 40 layers."""
    like = init(jax.random.PRNGKey(SEED), N, tok.n)
    for s in reversed(STAGES):
        done, part = CACHE / f"{s.name}.npz", CACHE / f"{s.name}.part.npz"
        if s.layers == N and done.exists():
            return load(done, like)[0], done.name
        if s.layers == N and part.exists():
            return load(part, (like, optimizer(s).init(like)))[0][0], part.name
    raise SystemExit("no weights in the cache: run the training first")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--eval", action="store_true")
    ap.add_argument("--export", action="store_true")
    ap.add_argument("--reference", action="store_true", help="write .cache/reference.json for check_llama.mjs")
    ap.add_argument("--expand", nargs=2, metavar=("I,J", "PATH"), help="write a stock F16 GGUF with the plan's layers written out")
    args = ap.parse_args()
    tok = get_tok()
    if args.eval or args.export or args.reference or args.expand:
        params, name = current(tok)
        print("weights:", name)
    else:
        params = train()[1]
        args.eval = args.export = True
    if args.eval:
        evaluate(params, tok)
    if args.export:
        export(params, tok)
    if args.reference:
        write_reference(params, tok)
    if args.expand:
        write_gguf(Path(args.expand[1]), params, tok, "f16", tuple(int(x) for x in args.expand[0].split(",")))
