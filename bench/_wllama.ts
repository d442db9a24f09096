/**
 * wllama, llama.cpp in WASM for browsers, as a peer: npm's package in Chromium without a window, on a page that is
 * isolated across origins, so that it may use threads.
 *
 * @module
 */

import { Browser, findChromium } from "../tests/server/_browser.ts";
import { installPackage } from "../tests/models/_peer.ts";
import { FetchError } from "../tests/models/fetch.ts";

/** The version that is compared with. */
export const WLLAMA_VERSION = "3.13.0";

/** What the page does; its functions are called over the browser's protocol. */
const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>wllama</title>
<script type="module">
import { Wllama } from "/package/esm/index.js";
let engine;
let file;
const quiet = { debug() {}, log() {}, warn() {}, error: console.error };
globalThis.load = async () => { file = await (await fetch("/model")).blob(); };
globalThis.context = async (nCtx, threads) => {
  await engine?.exit();
  engine = new Wllama({ default: "/package/esm/wasm/wllama.wasm" }, { logger: quiet, suppressNativeLog: true });
  await engine.loadModel([file], { n_ctx: nCtx, n_threads: threads, n_gpu_layers: 0, n_parallel: 1 });
  return { threads: engine.getNumThreads() };
};
globalThis.measure = async (prompt, tg) => {
  const { timings } = await engine.createCompletion({
    prompt, max_tokens: tg + 1, temperature: 0, ignore_eos: true, cache_prompt: false,
  });
  return timings;
};
globalThis.ready = true;
</script>`;

/** The timings of an answer, as llama-server's request handling gives them. */
interface Timings {
  prompt_n: number;
  prompt_ms: number;
  predicted_n: number;
  predicted_ms: number;
}

/** wllama behind the requests that `_child.ts` answers: `load`, `context` and `measure`. */
export class WllamaChild implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #texts = new Map<number, string>();
  #path = "";

  private constructor(browser: Browser, server: Deno.HttpServer<Deno.NetAddr>, setPath: PathBox) {
    this.#browser = browser;
    this.#server = server;
    setPath.get = () => this.#path;
  }

  /**
   * Starts the browser with the page.
   *
   * @throws {FetchError} If there is no Chromium, or npm cannot give the package.
   */
  static async start(): Promise<WllamaChild> {
    const program = findChromium();
    if (!program) throw new FetchError("wllama needs Chromium: install it, or name it in CHROMIUM");
    const folder = await installPackage("@wllama/wllama", WLLAMA_VERSION);
    const box: PathBox = { get: () => "" };
    const server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        const { pathname } = new URL(request.url);
        const headers = new Headers({
          "cross-origin-opener-policy": "same-origin",
          "cross-origin-embedder-policy": "require-corp",
          "cross-origin-resource-policy": "same-origin",
        });
        if (pathname === "/") {
          headers.set("content-type", "text/html");
          return new Response(PAGE, { headers });
        }
        const path = pathname === "/model" ? box.get() : folder + pathname.replace("/package", "");
        const file = await Deno.open(path).catch(() => undefined);
        if (!file) return new Response(null, { status: 404, headers });
        headers.set(
          "content-type",
          path.endsWith(".js")
            ? "text/javascript"
            : path.endsWith(".wasm")
            ? "application/wasm"
            : "application/octet-stream",
        );
        return new Response(file.readable, { headers });
      },
    );
    const browser = await Browser.start(program);
    const child = new WllamaChild(browser, server, box);
    await browser.open(`http://127.0.0.1:${server.addr.port}/`);
    await browser.until("globalThis.ready");
    return child;
  }

  /** As {@linkcode LineChild.call}. */
  async call<T>(op: string, fields: Record<string, unknown> = {}): Promise<T> {
    return await this.#run(op, fields) as T;
  }

  async #run(op: string, fields: Record<string, unknown>): Promise<unknown> {
    if (op === "load") {
      this.#path = String(fields.path);
      return await this.#browser.evaluate("load()");
    }
    if (op === "context") {
      const { threads } = await this.#browser.evaluate<{ threads: number }>(
        `context(${fields.nCtx}, ${fields.threads})`,
      );
      if (threads !== fields.threads) {
        throw new Error(`wllama runs with ${threads} threads, not ${fields.threads}`);
      }
      return {};
    }
    const { length } = fields.tokens as number[];
    const tg = fields.tg as number;
    const got = await this.#measure(await this.#textOf(length), tg);
    if (got.prompt_n !== length || got.predicted_n !== tg + 1) {
      throw new Error(`asked for ${length} and ${tg + 1}, got ${JSON.stringify(got)}`);
    }
    return { promptMs: got.prompt_ms, predictedMs: got.predicted_ms };
  }

  #measure(prompt: string, tg: number): Promise<Timings> {
    return this.#browser.evaluate(`measure(${JSON.stringify(prompt)}, ${tg})`);
  }

  /** Text of `n` tokens: wllama takes no tokens. Letters that a vocabulary does not join, so that it can be counted. */
  async #textOf(n: number): Promise<string> {
    const known = this.#texts.get(n);
    if (known) return known;
    const text = (letters: number) => "qzxj".repeat(Math.ceil(letters / 4)).slice(0, letters);
    let letters = n;
    for (let tries = 0; tries < 8; tries++) {
      const { prompt_n } = await this.#measure(text(letters), 0);
      if (prompt_n === n) {
        this.#texts.set(n, text(letters));
        return text(letters);
      }
      const step = Math.trunc((n - prompt_n) * letters / prompt_n);
      letters = Math.max(1, letters + (step || Math.sign(n - prompt_n)));
    }
    throw new Error(`no text of ${n} tokens was found`);
  }

  /** Ends the browser. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser[Symbol.asyncDispose]();
    await this.#server.shutdown();
  }
}

/** Where the server finds the model's path. */
interface PathBox {
  get: () => string;
}
