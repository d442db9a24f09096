import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, loadModel, type Model } from "@rys/edge";
import { fixture } from "../oracle/fixture.ts";
import { byteToken, DEMO, inRepo } from "./_engine.ts";

// A cancel stops the graph that computes a prompt, not only the next one: what was cancelled leaves nothing evaluated. A
// batch may have ended before its cancel arrives, so it is tried several times.

const ATTEMPTS = 12;

const SIZES = { nCtx: 4096, nBatch: 2048, nUbatch: 2048, threads: 1 } as const;

/** What is tried on a model. */
interface Trial {
  model: Model;
  /** Tokens of the prompt that is cancelled. */
  long: number;
  /** Tokens that another slot generates meanwhile. */
  n: number;
  /** Makes a small model slow enough. */
  repeatLayers?: string;
}

interface Slot {
  is_processing: boolean;
  n_prompt_tokens?: number;
}

async function slots(context: Context): Promise<Slot[]> {
  const { body } = await context.request("/slots");
  return JSON.parse(new TextDecoder().decode(body));
}

/** Waits for a slot to begin, or to end. */
async function until(context: Context, slot: number, busy: boolean): Promise<void> {
  while ((await slots(context))[slot]!.is_processing !== busy) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Starts a prompt in a slot, cancels it, and waits for the slot. */
async function cancelled(context: Context, prompt: number[], slot: number): Promise<void> {
  const cancel = new AbortController();
  const running = context.generate(prompt, {
    maxTokens: 1,
    cachePrompt: false,
    slot,
    signal: cancel.signal,
  }).text();
  await until(context, slot, true);
  cancel.abort(new Error("enough"));
  await assertRejects(() => running, Error, "enough");
  await until(context, slot, false);
}

/** A prompt of one batch, and one of a few tokens. */
const promptsOf = ({ info }: Model, long: number) => {
  const token = (i: number) => (byteToken(0) + (i * 7) % 200) % info.nVocab;
  return {
    long: Array.from({ length: long }, (_, i) => token(i)),
    short: Array.from({ length: 16 }, (_, i) => token(3 * i)),
  };
};

async function tokens(context: Context, prompt: number[], slot: number, n: number) {
  const options = { maxTokens: n, temperature: 0, ignoreEos: true, cachePrompt: false, slot };
  return (await context.generate(prompt, options).completion()).tokens;
}

async function stopsAlone({ model, long: length, repeatLayers = "none" }: Trial): Promise<void> {
  await using context = await model.createContext({ ...SIZES, repeatLayers, nParallel: 1 });
  const { long, short } = promptsOf(model, length);
  const want = await tokens(context, short, 0, 8);
  let stopped = 0;
  for (let i = 0; i < ATTEMPTS && stopped === 0; i++) {
    await cancelled(context, long, 0);
    if ((await slots(context))[0]!.n_prompt_tokens === 0) stopped++;
    assertEquals(await tokens(context, short, 0, 8), want);
  }
  assert(stopped > 0, "every batch ran to its end");
}

async function stopsAmongOthers(trial: Trial): Promise<void> {
  const { model, n, repeatLayers = "none" } = trial;
  await using context = await model.createContext({ ...SIZES, repeatLayers, nParallel: 2 });
  const { long, short } = promptsOf(model, trial.long);
  const want = await tokens(context, short, 0, n);
  let stopped = 0;
  for (let i = 0; i < ATTEMPTS && stopped === 0; i++) {
    let ended = false;
    const other = tokens(context, short, 0, n).finally(() => ended = true);
    await until(context, 0, true);
    await cancelled(context, long, 1);
    // The batch held a token of the other as well, or its prompt.
    if (!ended && (await slots(context))[1]!.n_prompt_tokens === 0) stopped++;
    assertEquals(await other, want);
    assertEquals(await tokens(context, short, 1, 8), want.slice(0, 8));
  }
  assert(stopped > 0, "every batch ran to its end");
}

const test = (name: string, fn: () => Promise<void>, ignore = false) =>
  Deno.test({ name, ignore, sanitizeOps: false, sanitizeResources: false, fn });

test("a cancel stops the batch of a prompt", async () => {
  await using model = await loadModel(DEMO);
  await stopsAlone({ model, long: 1500, n: 100 });
});

test("a cancel stops a batch that others share, and they go on as if alone", async () => {
  await using model = await loadModel(DEMO);
  await stopsAmongOthers({ model, long: 1500, n: 100 });
});

test("a cancel stops the batch of logits()", async () => {
  await using model = await loadModel(DEMO);
  const { long } = promptsOf(model, 1500);
  const cancel = new AbortController();
  const running = model.logits(long, { ...SIZES, signal: cancel.signal });
  setTimeout(() => cancel.abort(new Error("enough")), 50);
  await assertRejects(() => running, Error, "enough");
});

const noOracle = await Deno.stat(inRepo("wasm/oracle/build.json")).then(() => false, () => true);

// Memory that cannot be rolled back to any place: a sliding window; recurrent states beside attention.
for (const name of ["gemma3", "falcon-h1"]) {
  test(
    `${name}: a cancel stops a batch, alone and among others` +
      (noOracle ? ' (skipped: run "deno task build --oracle")' : ""),
    async () => {
      await using model = await loadModel(await fixture(name));
      const trial = { model, long: 240, n: 24, repeatLayers: "4,7x12" };
      await stopsAlone(trial);
      await stopsAmongOthers(trial);
    },
    noOracle,
  );
}
