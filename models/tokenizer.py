"""Word-level tokenizer of the demo model: longest match over a fixed list of byte strings.

It is what llama.cpp calls the "rwkv" tokenizer (tokenizer.ggml.model = "rwkv"): a trie of byte
strings, walked greedily.  Every single byte is a token, so any text round-trips exactly.
"""
import random
import re

import corpus

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
EOT, IM_START, IM_END = 0, 1, 2
PUNCT = ['"', "(", "'", "-"]
CHUNK = re.compile(rb" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 ]| ", re.S)


def build_vocab(seed=77, docs=60000):
    """(token byte strings, number of tokens that occur in the training text).

    0..2 are the control tokens; then come the bytes, punctuation, numbers and the words that the text
    generator writes; behind `active` stand forms which no training text has as a target.
    """
    r = random.Random(seed)
    text = []
    for _ in range(docs):
        text.append(corpus.plain(corpus.document(r, 120)))
    for a in (corpus.SUBJ, corpus.GIRLS, corpus.BOYS):
        text.append(" " + " ".join(a))
    forms = set()
    for t in text:
        forms.update(re.findall(r" ?[A-Za-z]+", re.sub(r"<\|\w+\|>", "\n", t)))
    forms = {f for f in forms if f.strip() not in ("system", "user", "assistant")} | {"system", "user", "assistant", " system", " user", " assistant"}
    spaced = sorted(f for f in forms if f[0] == " " and len(f) > 2 or f in (" a", " I", " A"))
    bare = sorted(f for f in forms if f[0] != " " and len(f) > 1 and f[0].isupper()) + ["system", "user", "assistant"]
    toks = [s.encode() for s in SPECIAL] + [bytes([b]) for b in range(256)]
    toks += [(" " + p).encode() for p in PUNCT]
    toks += [str(n).encode() for n in range(10, 100)] + [f" {n}".encode() for n in range(100)]
    toks += [s.encode() for s in spaced] + [s.encode() for s in bare]
    active = len(toks)
    have = set(toks)
    extra = sorted({s.strip() for s in spaced} | {" " + s for s in bare if s[0].isupper()})
    toks += [e.encode() for e in extra if e.encode() not in have]
    # The plain-text twins of the control tokens: llama.cpp's trie holds control tokens too, so text that
    # merely spells one would become one even where special tokens are not to be parsed.  A later entry with
    # the same bytes wins in the trie, and it is an ordinary token.
    toks += [s.encode() for s in SPECIAL]
    return toks, active


class Tokenizer:
    def __init__(self, toks, active):
        self.toks, self.active = toks, active
        self.n = len(toks)
        self.id = {}
        for i, t in enumerate(toks):
            self.id[t] = i                      # later entries win, as in llama.cpp
        self.maxlen = max(map(len, toks))
        self.cache = {}

    def greedy(self, b):
        out, p = [], 0
        while p < len(b):
            for n in range(min(self.maxlen, len(b) - p), 0, -1):
                i = self.id.get(b[p:p + n])
                if i is not None:
                    out.append(i)
                    p += n
                    break
        return out

    def encode_plain(self, text):
        b = text.encode() if isinstance(text, str) else text
        if b"<|" in b:
            return self.greedy(b)
        out = []
        for c in CHUNK.findall(b):
            t = self.cache.get(c)
            if t is None:
                t = self.cache[c] = tuple(self.greedy(c))
            out.extend(t)
        return out

    def encode(self, text, special=True):
        if not special:
            return self.encode_plain(text)
        out = []
        for part in re.split(r"(<\|endoftext\|>|<\|im_start\|>|<\|im_end\|>)", text):
            if part in SPECIAL:
                out.append(SPECIAL.index(part))
            elif part:
                out.extend(self.encode_plain(part))
        return out

    def decode(self, ids, special=True):
        b = b"".join(self.toks[i] for i in ids if special or i > IM_END)
        return b.decode(errors="replace")

    def gguf_tokens(self):
        """Texts in the escaped form which llama.cpp's rwkv tokenizer reads, and their types."""
        def esc(t):
            out = ""
            for c in t:
                out += {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\"}.get(c) or (chr(c) if 32 <= c < 127 else f"\\x{c:02x}")
            return out
        texts = [esc(t) for t in self.toks]
        for k in range(1, 4):                   # twins: same bytes, other spelling of the entry
            texts[-k] = texts[-k].replace("|", "\\x7c")
        return texts, [3, 3, 3] + [1] * (self.n - 3)
