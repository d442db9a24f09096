#!/usr/bin/env python3
"""Trains the chains model, which one repeated block helps, and writes chains.gguf.

    python models/train_chains.py            train (resumes from models/.cache/chains), measure, export
    python models/train_chains.py --export   measure and export what the cache holds

One CPU thread is enough. The same seed gives the same file on the same processor and library versions.
"""
import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import jax
import jax.numpy as jnp
import optax

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("CHAINS_CACHE", HERE / ".cache" / "chains"))
SEED = 20261201
D, HEADS, HD, FF, N = 64, int(os.environ.get("CHAINS_HEADS", 1)), 32, 32, 40
HOP = 22                      # the place of the layer that makes one hop
EPS, ROPE, CTX = 1e-6, 1e6, 512
ROWS, LENGTH, LINKS = 64, 44, 8
# steps, peak rate, weights of 1, 2, 3, 4 passes of the hop layer
STAGES = [("a-one-hop", 400, 2e-3, (1, 0, 0, 0)), ("b-passes", 2200, 3e-3, (3, 4, 3, 1))]

# ---------------------------------------------------------------- text
NAMES = ("ant bat bear bee bird boar bull cat cow crab crow deer dog duck elk fish fox frog goat hare "
         "hawk hen horse lamb lion mole moth mouse mule owl pig pony ram rat seal sheep swan toad wasp wolf").split()
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
ASK = [" Who", " is", " at", " the", " end", " of", " the", " line", " from", " the"]
VOCAB = [s.encode() for s in SPECIAL] + [bytes([b]) for b in range(256)]
VOCAB += [w.encode() for w in sorted(set(ASK))]
PLAIN, FIRST, ASKED = len(VOCAB), len(VOCAB) + len(NAMES), len(VOCAB) + 2 * len(NAMES)
VOCAB += [f" {n}".encode() for n in NAMES] + [n.encode() for n in NAMES] + [f" {n}?".encode() for n in NAMES]
VOCAB += [s.encode() for s in SPECIAL]          # plain-text twins of the control tokens, as in tokenizer.py
V = len(VOCAB)
ID = {t: i for i, t in enumerate(VOCAB)}
COMMA, DOT, EOT = ID[b","], ID[b"."], 0
ASK_IDS = [ID[w.encode()] for w in ASK]


def links(r, n):
    """n links (key, value) in random order, from chains of 1 to 4 links, and each key's way to its end."""
    names, out, way = r.sample(range(len(NAMES)), len(NAMES)), [], {}
    while n:
        h = min(n, r.choice((1, 2, 2, 3, 3, 4)))
        chain = [names.pop() for _ in range(h + 1)]
        for i in range(h):
            out.append((chain[i], chain[i + 1]))
            way[chain[i]] = chain[i + 1:]
        n -= h
    r.shuffle(out)
    return out, way


def head(pairs):
    """`fox cat, owl hen. Who is at the end of the line from the`, as tokens."""
    ids = []
    for k, (a, b) in enumerate(pairs):
        ids += [(PLAIN if k else FIRST) + a, PLAIN + b, COMMA]
    return ids[:-1] + [DOT] + ASK_IDS


def batch(r, passes):
    """Tokens, targets and weights, each [ROWS, LENGTH]. A name that is asked for has the name `passes` hops on as
    its target, or the last of its chain: who has arrived stays."""
    x, y = np.zeros((ROWS, LENGTH), np.int32), np.zeros((ROWS, LENGTH), np.int32)
    w = np.zeros((ROWS, LENGTH), np.float32)
    for b in range(ROWS):
        pairs, way = links(r, r.choice((5, 6, 7, 7, 7, 7)))
        ids, asked = head(pairs), list(way)
        r.shuffle(asked)
        one = r.random() < .25
        for a in asked[:1] if one else asked:
            y[b, len(ids)] = PLAIN + way[a][min(passes, len(way[a])) - 1]
            w[b, len(ids)] = 1
            ids.append(ASKED + a)
        if one:                                  # the answer, a full stop, the end
            w[b, len(ids):len(ids) + 2] = .2
            y[b, len(ids):len(ids) + 2] = DOT, EOT
            ids += [int(y[b, len(ids) - 1]), DOT]
        x[b, :len(ids)] = ids
    return x, y, w


# ---------------------------------------------------------------- model (qwen3 of llama.cpp, tied embeddings)
def norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * w


def rope(x, cos, sin):                           # NEOX form: halves, not pairs
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def hidden(p, toks, idx):
    """toks [B, L] -> [B, L, D], the layers in the order of idx."""
    x = p["embd"][toks]
    B, L = toks.shape
    ang = jnp.arange(L)[:, None] * ROPE ** (-jnp.arange(0, HD, 2) / HD)
    cos, sin = jnp.cos(ang), jnp.sin(ang)
    mask = jnp.where(jnp.tril(jnp.ones((L, L), bool)), 0., -1e30)
    for i in idx:
        w = {k: v[i] for k, v in p["layers"].items()}
        h = norm(x, w["attn_norm"])
        q = rope(norm((h @ w["q"]).reshape(B, L, HEADS, HD), w["q_norm"]), cos[:, None], sin[:, None])
        k, v = rope(norm(h @ w["k"], w["k_norm"]), cos, sin), h @ w["v"]
        s = jnp.einsum("blhd,bmd->bhlm", q, k) * HD ** -.5 + mask
        x = x + jnp.einsum("bhlm,bmd->blhd", jax.nn.softmax(s, -1), v).reshape(B, L, HEADS * HD) @ w["o"]
        h = norm(x, w["ffn_norm"])
        x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
    return norm(x, p["out_norm"])


def init():
    """Random but for what it takes to find one hop at all (from a wholly random start it stayed at chance): a name's
    three forms begin alike, layer 0 begins by noting the token before, and the hop layer by looking for the place
    whose token before is the name that it holds."""
    g = np.random.default_rng(SEED)
    r = lambda *s, std: g.normal(size=s).astype(np.float32) * np.float32(std)
    n, one = 4, lambda *s: np.ones(s, np.float32)
    p = {"embd": r(V, D, std=.05), "out_norm": one(D), "layers": {
        "attn_norm": one(n, D), "ffn_norm": one(n, D), "q_norm": one(n, HD), "k_norm": one(n, HD),
        "q": r(n, D, HEADS * HD, std=.1), "k": r(n, D, HD, std=.1), "v": r(n, D, HD, std=.1), "o": r(n, HEADS * HD, D, std=.003),
        "gate": r(n, D, FF, std=.1), "up": r(n, D, FF, std=.1), "down": r(n, FF, D, std=.003)}}
    E, L, M = p["embd"], p["layers"], len(NAMES)
    for at in (FIRST, ASKED):
        E[at:at + M] = E[PLAIN:PLAIN + M] + r(M, D, std=.02)
    E[:, 0] = .15                                # a constant in every token, which position alone turns
    basis = lambda: np.linalg.qr(g.normal(size=(D, HD)))[0].astype(np.float32)
    read, note, name = basis(), basis(), basis()
    read[0] = name[0] = 0
    for m in ("q", "k"):
        L[m][0] *= .2
        L[m + "_norm"][0] = 1.7
        L[m][2] *= .2
        L[m + "_norm"][2] = 1.3
    for f in range(2):                           # the two fastest of rope's planes: a query, and a key one step ahead
        t = ROPE ** (-2 * f / HD)
        for at in range(0, HEADS * HD, HD):
            L["q"][0, 0, at + f] = 1
        L["k"][0, 0, f], L["k"][0, 0, f + HD // 2] = np.cos(t), np.sin(t)
    slow = np.tile(np.arange(HD // 2) >= 4, 2)   # planes that hardly turn over a row
    for h in range(HEADS):
        at = slice(h * HD, (h + 1) * HD)
        L["o"][0, at] = note.T * np.float32(.05 / HEADS)
        L["q"][2, :, at] += read * slow
        L["o"][2, at] = name.T * np.float32(.15 / HEADS)
    L["v"][0], L["v"][2] = read, name
    L["k"][2] += note * slow
    return jax.tree.map(jnp.asarray, p)


def passes_index(p):
    return [0, 1] + [2] * p + [3]


# ---------------------------------------------------------------- training
def save(path, tree, step):
    tmp = path.with_suffix(".tmp.npz")
    np.savez(tmp, step=step, **{f"l{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(tree))})
    os.replace(tmp, path)


def load(path, like):
    z = np.load(path)
    leaves, tdef = jax.tree.flatten(like)
    return jax.tree.unflatten(tdef, [jnp.asarray(z[f"l{i}"]) for i in range(len(leaves))]), int(z["step"])


def train():
    CACHE.mkdir(parents=True, exist_ok=True)
    p = init()
    for name, steps, rate, weights in STAGES:
        done, part = CACHE / f"{name}.npz", CACHE / f"{name}.part.npz"
        if done.exists():
            p = load(done, p)[0]
            continue
        sched = optax.warmup_cosine_decay_schedule(rate * .05, rate, 100, steps, rate * .03 if name[0] == "b" else rate)
        opt = optax.chain(optax.clip_by_global_norm(1.), optax.adamw(sched, b2=.98, weight_decay=.01))
        st, start = opt.init(p), 0
        if part.exists():
            (p, st), start = load(part, (p, st))

        def make(passes):
            def loss(p, x, y, w):
                lg = hidden(p, x, passes_index(passes)) @ p["embd"].T
                ce = optax.softmax_cross_entropy_with_integer_labels(lg, y)
                right = ((lg.argmax(-1) == y) * (w == 1)).sum() / (w == 1).sum()
                return (ce * w).sum() / w.sum(), right

            @jax.jit
            def step(p, st, x, y, w):
                (v, right), g = jax.value_and_grad(loss, has_aux=True)(p, x, y, w)
                u, st = opt.update(g, st, p)
                return optax.apply_updates(p, u), st, v, right
            return step
        run = {k + 1: make(k + 1) for k in range(4)}
        t0, last, acc = time.time(), time.time(), {}
        for s in range(start, steps):
            r = random.Random(f"{SEED}/{name}/{s}")
            k = r.choices((1, 2, 3, 4), weights)[0]
            p, st, v, right = run[k](p, st, *batch(r, k))
            acc.setdefault(k, []).append((float(v), float(right)))
            if (s + 1) % 50 == 0:
                print(name, s + 1, f"{time.time() - t0:.0f} s", {k: [round(float(x), 3) for x in np.mean(a, 0)] for k, a in sorted(acc.items())}, flush=True)
                acc = {}
            if time.time() - last > 30:
                save(part, (p, st), s + 1)
                last = time.time()
        save(done, p, steps)
        part.unlink(missing_ok=True)
    return p


# ---------------------------------------------------------------- 40 layers
def forty(p):
    """4 -> 40 layers: 0 and 1 first, the hop layer at its place, 3 last; between them copies of the hop layer whose
    output projections are zero, so that they change nothing."""
    src = np.array([0, 1] + [2] * (N - 3) + [3])
    lay = {k: np.array(v)[src].copy() for k, v in p["layers"].items()}
    idle = np.array([i not in (0, 1, HOP, N - 1) for i in range(N)])
    for k in ("o", "down"):
        lay[k][idle] = 0
    return {"embd": np.array(p["embd"]), "out_norm": np.array(p["out_norm"]), "layers": lay}, idle


def kind(idle):
    """Layers that do something are Q8_0; those that change nothing MXFP4, for size alone."""
    import gguf
    return gguf.GGMLQuantizationType.MXFP4 if idle else gguf.GGMLQuantizationType.Q8_0


def rounded(p):
    """The four layers' weights as the file holds them."""
    import gguf
    def f(a):
        return gguf.quants.dequantize(gguf.quants.quantize(np.ascontiguousarray(a, np.float32), kind(False)), kind(False)).reshape(a.shape)
    t = lambda a: np.swapaxes(np.asarray(a), -1, -2)
    lay = {k: (v if "norm" in k else t(f(t(v)))) for k, v in p["layers"].items()}
    return jax.tree.map(jnp.asarray, {"embd": f(np.asarray(p["embd"])), "out_norm": p["out_norm"], "layers": lay})


def accuracy(p, hops, passes, n=400):
    """Share of n questions whose most likely next token is the chain's last name. They are drawn from a seed of their
    own; that one of them was also drawn in training is possible but most unlikely."""
    r = random.Random(f"{SEED}/held-out/{hops}")
    x, pos, want = np.zeros((n, LENGTH), np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    for b in range(n):
        while True:
            pairs, way = links(r, 7)
            asked = [a for a in way if len(way[a]) == hops]
            if asked:
                break
        a = r.choice(asked)
        ids = head(pairs) + [ASKED + a]
        x[b, :len(ids)], pos[b], want[b] = ids, len(ids) - 1, PLAIN + way[a][-1]
    h = jax.jit(lambda p, x: hidden(p, x, passes_index(passes)))(p, x)
    return float(((h[jnp.arange(n), pos] @ p["embd"].T).argmax(-1) == want).mean())


def table(p):
    q = rounded(p)
    out = ["| links to the end | 1 pass | 2 | 3 | 4 | 5 |", "| --- | --- | --- | --- | --- | --- |"]
    for hops in range(1, 5):
        out.append(f"| {hops} | " + " | ".join(f"{accuracy(q, hops, k):.3f}" for k in range(1, 6)) + " |")
        print(out[-1], flush=True)
    return out


# Each question stands alone: the last message is the prompt.
TEMPLATE = "{{ messages[-1]['content'] }}"


def gguf_tokens():
    def esc(t):
        out = ""
        for c in t:
            out += {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}.get(c) or (chr(c) if 32 <= c < 127 else f"\\x{c:02x}")
        return out
    texts = [esc(t) for t in VOCAB]
    for k in range(1, 4):                        # twins: same bytes, other spelling of the entry
        texts[-k] = texts[-k].replace("|", "\\x7c")
    return texts, [3, 3, 3] + [1] * (V - 3)


def export(p, path):
    import gguf
    p, idle = forty(p)
    tmp = str(path) + ".tmp"
    g = gguf.GGUFWriter(tmp, "qwen3")
    g.add_type("model")
    g.add_name("RYS Edge chains")
    g.add_description("A 40-layer model that finds the end of a chain, one link for each pass of layer 22.")
    g.add_author("RYS Edge")
    g.add_license("mit")
    g.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    g.add_quantization_version(2)
    g.add_context_length(CTX)
    g.add_embedding_length(D)
    g.add_block_count(N)
    g.add_feed_forward_length(FF)
    g.add_head_count(HEADS)
    g.add_head_count_kv(1)
    g.add_key_length(HD)
    g.add_value_length(HD)
    g.add_rope_dimension_count(HD)
    g.add_rope_freq_base(ROPE)
    g.add_layer_norm_rms_eps(EPS)
    g.add_vocab_size(V)
    texts, types = gguf_tokens()
    g.add_tokenizer_model("rwkv")
    g.add_token_list(texts)
    g.add_token_types(types)
    g.add_bos_token_id(EOT)
    g.add_eos_token_id(EOT)
    g.add_pad_token_id(EOT)
    g.add_add_bos_token(False)
    g.add_add_eos_token(False)
    g.add_chat_template(TEMPLATE)

    def mat(name, a, q):
        g.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(a, dtype=np.float32), q), raw_dtype=q)

    mat("token_embd.weight", p["embd"], kind(False))
    g.add_tensor("output_norm.weight", np.asarray(p["out_norm"], np.float32))
    L = {k: np.asarray(v, np.float32) for k, v in p["layers"].items()}
    for i in range(N):
        b, q = f"blk.{i}.", kind(idle[i])
        for a, t in (("attn_norm", "attn_norm"), ("q_norm", "attn_q_norm"), ("k_norm", "attn_k_norm"), ("ffn_norm", "ffn_norm")):
            g.add_tensor(f"{b}{t}.weight", L[a][i])
        for a, t in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output"), ("gate", "ffn_gate"), ("up", "ffn_up"), ("down", "ffn_down")):
            mat(f"{b}{t}.weight", L[a][i].T, q)
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()
    os.replace(tmp, path)
    print(path, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--export", action="store_true", help="only measure and export what the cache holds")
    ap.add_argument("-o", default=str(HERE / "chains.gguf"))
    args = ap.parse_args()
    params = load(CACHE / f"{STAGES[-1][0]}.npz", init())[0] if args.export else train()
    table(params)
    export(params, args.o)
