// Damaged values in the headers of sound files, against the engine: what is loaded, computed with or refused must leave
// the instance as it was.
//
//   deno run -A tests/engine/_header_fuzz.ts SEED ROUNDS [FILE...]

import { GgufError, readHeader } from "@rys/edge/gguf";
import { EngineClient, EngineError } from "../../src/engine/client.ts";
import { scanHeader } from "../../src/gguf/_scan.ts";
import { openSource } from "../../src/gguf/byte_source.ts";
import { readGguf, wideKey } from "./_gguf.ts";
import { writeGgufFile } from "../../src/gguf/_testing.ts";
import { between, pick, seeded } from "../../src/plan/_testing.ts";

/** What became of the damaged files. */
export interface FuzzResult {
  /** Refused by the header check. */
  refused: number;
  /** Refused by llama.cpp. */
  failed: number;
  /** Loaded and computed with. */
  ran: number;
  /** Ended the instance, or did not end: the damage and what was said. */
  deaths: string[];
  /** llama.cpp's refusals by assertions, where the header check could say it better. */
  assertions: Map<string, string>;
}

interface Damaged {
  bytes: Uint8Array<ArrayBuffer>;
  what: string;
}

const WIDTH = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const [FLOAT, STRING, DOUBLE] = [6, 8, 12];
const WHOLE = [0, 1, 2, 3, 5, 7, 16, 31, 33, 100, 255, 513, 0x10000, 0x7fffffff, 0xffffffff];
const FLOATS = [0, -1, 1, 1e-30, 1e30, NaN, Infinity, -Infinity, 1e-6];
/** Keys that no writer gets wrong; their damage is found by the tensors. */
const BORING = /^general\.(?!architecture|alignment)|^tokenizer\.chat_template/;

/** A sound file and the places in it that are damaged. */
async function damager(name: string): Promise<(random: () => number) => Damaged> {
  const sound = /demo[^/]*$/.test(name) ? shortened(name) : await Deno.readFile(name);
  const scan = await scanHeader(await openSource(sound));
  const keys = scan.keys.filter(({ key }) => !BORING.test(key));
  const short = name.replace(/.*\//, "");
  return (random) => {
    const bytes = sound.slice();
    const view = new DataView(bytes.buffer);
    const done = (what: string): Damaged => ({ bytes, what: `${short}: ${what}` });
    const number = (type: number, at: number) => {
      const value = pick(random, type === FLOAT || type === DOUBLE ? FLOATS : WHOLE);
      if (type === FLOAT) view.setFloat32(at, value, true);
      else if (type === DOUBLE) view.setFloat64(at, value, true);
      else {
        for (let i = 0; i < WIDTH[type]!; i++) {
          bytes[at + i] = Number((BigInt(value) >> BigInt(8 * i)) & 255n);
        }
      }
      return value;
    };
    const byte = (start: number, end: number) => {
      const at = between(random, start, end - 1);
      bytes[at] = random() < 0.5
        ? bytes[at]! ^ (1 << between(random, 0, 7))
        : between(random, 0, 255);
      return `byte ${at} is ${bytes[at]}`;
    };
    if (random() < 0.25) {
      // A tensor: name, dimensions, type, or offset.
      const at = between(random, scan.tensorsAt, scan.bytes.length - 1);
      return done(byte(at, at + 1));
    }
    const { key, valueAt, end, start, array } = pick(random, keys);
    const type = view.getUint32(valueAt, true);
    const value = valueAt + 4;
    if (random() < 0.1) return done(`${key}: ${byte(start, Math.min(end, value + 24))}`);
    if (array) {
      const width = WIDTH[array.elementType]!;
      if (array.length === 0) return done(`${key}: as it was`);
      if (width > 0) {
        const i = between(random, 0, array.length - 1);
        return done(`${key}[${i}] = ${number(array.elementType, value + 12 + i * width)}`);
      }
      return done(`${key}: ${byte(value, end)}`);
    }
    if (type === STRING) return done(`${key}: ${byte(value + (random() < 0.9 ? 8 : 0), end)}`);
    if (WIDTH[type] === 4 && random() < 0.1) {
      view.setUint32(valueAt, pick(random, [4, 5, 6]), true);
      return done(`${key}: of type ${view.getUint32(valueAt, true)}`);
    }
    return done(`${key} = ${number(type, value)}`);
  };
}

/** The demo model's first layers, as a whole model of them is slow to load a thousand times. */
function shortened(name: string): Uint8Array<ArrayBuffer> {
  const { keys, tensors } = readGguf(Deno.readFileSync(name));
  const path = Deno.makeTempFileSync({ suffix: ".gguf" });
  try {
    writeGgufFile(path, {
      keys: keys.map((key) =>
        key.key === "qwen3.block_count" ? wideKey(key.key, "uint32", 2) : key
      ),
      tensors: tensors.filter(({ name }) => !/^blk\.(?![01]\.)/.test(name)),
    });
    return Deno.readFileSync(path);
  } finally {
    Deno.removeSync(path);
  }
}

/** Damages files `rounds` times, or until `until`, and lets the engine have each. */
export async function fuzzHeaders(
  files: string[],
  { seed, rounds, limitMs = 120_000, onDeath }: {
    seed: number;
    rounds: number;
    limitMs?: number;
    onDeath?: (death: string) => void;
  },
): Promise<FuzzResult> {
  const random = seeded(seed);
  const damagers = await Promise.all(files.map(damager));
  const result: FuzzResult = { refused: 0, failed: 0, ran: 0, deaths: [], assertions: new Map() };
  const file = await Deno.makeTempFile({ suffix: ".gguf" });
  let client: EngineClient | undefined;
  try {
    for (let round = 0; round < rounds; round++) {
      const { bytes, what } = pick(random, damagers)(random);

      client ??= await EngineClient.start({
        dist: new URL("../../wasm/dist/", import.meta.url),
        verbosity: 0,
        threads: 3,
      });
      const engine = client;
      const limit = setTimeout(() => engine.kill(`nothing for ${limitMs} ms`), limitMs);
      try {
        await Deno.writeFile(file, bytes);
        await use(engine, file);
        result.ran++;
      } catch (error) {
        const says = `${what}: ${error}`;
        if (error instanceof GgufError) result.refused++;
        else if (error instanceof EngineError && !error.fatal) {
          result.failed++;
          const assertion = /[\w.-]+:\d+: GGML_ASSERT.*/.exec(error.message)?.[0];
          if (assertion) result.assertions.set(assertion, what);
        } else {
          result.deaths.push(says);
          onDeath?.(says);
          await client.close();
          client = undefined;
        }
      } finally {
        clearTimeout(limit);
      }
    }
  } finally {
    await client?.close();
    await Deno.remove(file);
  }
  return result;
}

/** Loads a model, makes a context and computes a few tokens. */
async function use(client: EngineClient, file: string): Promise<void> {
  const { size } = await readHeader(file, { name: "damaged.gguf" });
  const path = client.addFiles([{ size, path: file }]);
  const { handle: model } = await client.call({
    fn: "model_load",
    options: { path, args: [] },
    cancel: 0,
  });
  try {
    const args = ["-t", "2", "-c", "64", "-b", "32", "-ub", "32"];
    const words = new Uint32Array();
    const { handle: context } = await client.call({
      fn: "context_create",
      model,
      options: { args: [...args, "-np", "1"] },
      kind: 0,
      words,
    });
    const body = JSON.stringify({ prompt: [0, 1, 2], n_predict: 2, temperature: 0 });
    await client.call({
      fn: "context_request",
      context,
      method: "POST",
      path: "/completion",
      query: "",
      body: new TextEncoder().encode(body),
      cancel: 0,
    });
    await client.call({ fn: "context_free", context });
    const tokens = Int32Array.of(0, 1, 2);
    await client.call({
      fn: "logits_eval",
      model,
      options: { args },
      kind: 0,
      words,
      tokens,
      cancel: 0,
    });
    await client.call({
      fn: "model_call",
      model,
      call: { do: "tokenize", text: "Once upon a time 12", add_special: true, parse_special: true },
    }).catch((error) => {
      if (error.fatal) throw error;
    });
  } finally {
    if (!client.gone) await client.call({ fn: "model_free", model });
  }
}

if (import.meta.main) {
  const [seed = "1", rounds = "200", ...files] = Deno.args;
  const begin = performance.now();
  const result = await fuzzHeaders(files.length > 0 ? files : ["models/demo.gguf"], {
    seed: Number(seed),
    rounds: Number(rounds),
    limitMs: 30_000,
    onDeath: (death) => console.log(death),
  });
  console.log({
    ...result,
    deaths: result.deaths.length,
    seconds: (performance.now() - begin) / 1000,
  });
}
