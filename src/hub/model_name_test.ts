import { assertEquals, assertThrows } from "@std/assert";
import { formatModelName, isRemoteName, parseModelName } from "./model_name.ts";

Deno.test("parseModelName() reads names on the hub", () => {
  const COMMIT = "0123456789abcdef0123456789abcdef01234567";
  const cases: [string, Record<string, string>][] = [
    ["hf:o/r", { repo: "o/r", revision: "main" }],
    ["HF:o/r:Q4_K_M", { repo: "o/r", revision: "main", quant: "Q4_K_M" }],
    ["hf://o/r/m.gguf", { repo: "o/r", revision: "main", file: "m.gguf" }],
    ["hf:o/r@v1.0/a/b/m.gguf", { repo: "o/r", revision: "v1.0", file: "a/b/m.gguf" }],
    [`hf:o/r@${COMMIT}:q8_0`, { repo: "o/r", revision: COMMIT, quant: "q8_0" }],
    ["hf:o/r@refs%2Fpr%2F1", { repo: "o/r", revision: "refs/pr/1" }],
    ["hf:Owner_1/Some.Model-7B-GGUF", { repo: "Owner_1/Some.Model-7B-GGUF", revision: "main" }],
    ["https://huggingface.co/o/r", { repo: "o/r", revision: "main" }],
    ["https://hf.co/o/r/", { repo: "o/r", revision: "main" }],
    ["https://huggingface.co/o/r/tree/dev", { repo: "o/r", revision: "dev" }],
    [
      "https://huggingface.co/o/r/resolve/main/a%20b/m.gguf?download=true#x",
      { repo: "o/r", revision: "main", file: "a b/m.gguf" },
    ],
  ];
  for (const [text, rest] of cases) {
    const name = parseModelName(text);
    assertEquals(name as unknown, { kind: "hub", ...rest }, text);
    assertEquals(parseModelName(formatModelName(name)), name);
  }
  assertEquals(
    parseModelName("https://mirror.test/hf/o/r/blob/main/m.gguf", "https://mirror.test/hf"),
    { kind: "hub", repo: "o/r", revision: "main", file: "m.gguf" },
  );
});

Deno.test("parseModelName() leaves paths and other URLs as they are", () => {
  for (const path of ["m.gguf", "/a/hf:b", "./hf:o/r", "C:\\m.gguf", "", "file:///m.gguf"]) {
    assertEquals(parseModelName(path), { kind: "file", path });
    assertEquals(isRemoteName(path), false);
  }
  const url = new URL("https://example.com/m.gguf?x=1");
  assertEquals(parseModelName(`${url}#top`), { kind: "url", url });
  assertEquals(parseModelName("http://127.0.0.1:9/hf/o/r/m.gguf").kind, "url");
});

Deno.test("parseModelName() says what is wrong with a name", () => {
  const cases: [string, string][] = [
    ["hf:", "expected hf:OWNER/REPO"],
    ["hf:only", "expected hf:OWNER/REPO"],
    ["hf:a--b/r", '"a--b/r" is not a repository'],
    ["hf:../r", "is not a repository"],
    ["hf:o/..", "is not a repository"],
    ["hf:o/r:", '"" is not a quantisation'],
    ["hf:o/r:Q4/../x", "expected hf:OWNER/REPO"],
    ["hf:o/r/m.bin", '"m.bin" is not a GGUF'],
    ["hf:o/r/../../m.gguf", "is not a path in a repository"],
    ["hf:o/r/a\\b.gguf", "is not a path in a repository"],
    ["hf:o/r/m.gguf:Q4_0", "exclude each other"],
    ["hf:o/r@..%2Fx", "is not a branch"],
    ["hf:o/r@%", "not percent-encoded"],
    ["https://", "it is not a URL"],
    ["https://user:secret@example.com/m.gguf", "is not fetched"],
  ];
  for (const [text, words] of cases) {
    const error = assertThrows(() => parseModelName(text), SyntaxError, words);
    assertEquals(error.message.includes("secret"), false);
  }
});
