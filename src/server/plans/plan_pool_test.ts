import { assertEquals, assertRejects } from "@std/assert";
import { fileURLToPath } from "node:url";
import { loadModel, type Model } from "../../engine/mod.ts";
import { ApiError } from "../http/api_error.ts";
import { PlanPool, type PoolOptions } from "./plan_pool.ts";

const DEMO = fileURLToPath(new URL("../../../models/demo.gguf", import.meta.url));

/** A pool on the demo model, and what was made and freed. */
function poolOn(
  model: Model,
  options: Partial<PoolOptions> = {},
): { pool: PlanPool; log: string[] } {
  const log: string[] = [];
  const pool = new PlanPool({
    maxContexts: 2,
    memoryBudget: 2 ** 40,
    nParallel: 1,
    maxQueue: 10,
    create: (_kind, plan) =>
      model.createContext({ repeatLayers: plan.layers, nCtx: 256, nParallel: 1, threads: 1 }),
    estimate: () => 1,
    onChange: (what, { plan }) => log.push(`${what} ${plan.spec}`),
    ...options,
  });
  return { pool, log };
}

/** Lets promises that are settled go on. */
const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test({
  name: "PlanPool",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async (t) => {
    await using model = await loadModel(DEMO);
    const plan = (spec: string) => model.expandPlan(spec);
    const closed = new Error("closed");

    await t.step("shares a context among spellings of the same layers", async () => {
      const { pool, log } = poolOn(model, { nParallel: 2 });
      const [a, b] = await Promise.all([
        pool.acquire("text", plan("1,2"), undefined),
        pool.acquire("text", plan("1..1"), undefined),
      ]);
      assertEquals([a.context === b.context, log, pool.running], [true, ["made 1,2"], 2]);
      assertEquals(a.context.info.plan.nLayerEff, 41);
      a.release();
      a.release(); // harmless
      assertEquals(pool.running, 1);
      b.release();
      await pool.close(closed);
    });

    await t.step("frees the context that was idle for longest", async () => {
      const { pool, log } = poolOn(model);
      for (const spec of ["1,2", "2,3", "1,2", "3,4", "1,2"]) {
        (await pool.acquire("text", plan(spec), undefined)).release();
      }
      assertEquals(log, ["made 1,2", "made 2,3", "freed 2,3", "made 3,4"]);
      await pool.close(closed);
      assertEquals(pool.entries, []);
    });

    await t.step("does not free what is in use; whoever waits is next", async () => {
      const { pool, log } = poolOn(model, { maxContexts: 1 });
      const first = await pool.acquire("text", plan("1,2"), undefined);
      const order: string[] = [];
      const waiting = pool.acquire("text", plan("2,3"), undefined).then((lease) => {
        order.push("2,3");
        lease.release();
      });
      // Comes later for the context that is to make room: it must not keep the other one out.
      const later = pool.acquire("text", plan("1,2"), undefined).then((lease) => {
        order.push("1,2");
        lease.release();
      });
      await turn();
      assertEquals([pool.queued, log], [2, ["made 1,2"]]);
      first.release();
      await Promise.all([waiting, later]);
      assertEquals(order, ["2,3", "1,2"]);
      assertEquals(pool.queued, 0);
      await pool.close(closed);
    });

    await t.step("forgets who gives up, and keeps the context then", async () => {
      const { pool, log } = poolOn(model, { maxContexts: 1 });
      const first = await pool.acquire("text", plan("1,2"), undefined);
      const reason = new Error("enough");
      const gone = new AbortController();
      const waiting = [plan("2,3"), plan("1,2")].map((one) =>
        assertRejects(() => pool.acquire("text", one, gone.signal), Error, "enough")
      );
      await turn();
      gone.abort(reason);
      await Promise.all(waiting);
      await assertRejects(() => pool.acquire("text", plan("5,6"), gone.signal), Error, "enough");
      first.release();
      (await pool.acquire("text", plan("1,2"), undefined)).release();
      assertEquals([log, pool.queued, pool.running], [["made 1,2"], 0, 0]);
      await pool.close(closed);
    });

    await t.step("goes on when those who wanted a context leave while it is made", async () => {
      const { pool, log } = poolOn(model, { maxContexts: 1 });
      const gone = new AbortController();
      const left = assertRejects(
        () => pool.acquire("text", plan("1,2"), gone.signal),
        Error,
        "enough",
      );
      const waiting = pool.acquire("text", plan("2,3"), undefined);
      assertEquals([pool.queued, pool.entries[0]?.context], [1, undefined]);
      gone.abort(new Error("enough"));
      await left;
      (await waiting).release();
      assertEquals(log, ["made 1,2", "freed 1,2", "made 2,3"]);
      await pool.close(closed);
    });

    await t.step("keeps to the memory budget", async () => {
      const probe = poolOn(model).pool;
      (await probe.acquire("text", plan("1,2"), undefined)).release();
      const bytes = probe.bytes; // of 41 layers
      await probe.close(closed);
      const { pool, log } = poolOn(model, {
        maxContexts: 4,
        memoryBudget: 2.5 * bytes,
        estimate: (_kind, { nLayerEff }) => bytes * nLayerEff / 41,
      });
      for (const spec of ["1,2", "2,3", "3,4"]) {
        (await pool.acquire("text", plan(spec), undefined)).release();
      }
      assertEquals(log, ["made 1,2", "made 2,3", "freed 1,2", "made 3,4"]);
      log.length = 0;
      (await pool.acquire("text", plan("0,40"), undefined)).release();
      assertEquals(log, ["freed 2,3", "freed 3,4", "made 0,40"]);
      const error = await assertRejects(
        () => pool.acquire("text", plan("0,40x9"), undefined),
        ApiError,
        "MiB",
      );
      assertEquals(error.status, 400);
      await pool.close(closed);
    });

    await t.step("refuses more than may wait", async () => {
      const { pool } = poolOn(model, { maxQueue: 1 });
      const first = await pool.acquire("text", plan("1,2"), undefined);
      const second = pool.acquire("text", plan("1,2"), undefined);
      const error = await assertRejects(
        () => pool.acquire("text", plan("1,2"), undefined),
        ApiError,
      );
      assertEquals(error.status, 503);
      // What needs no slot does not wait.
      (await pool.acquire("text", plan("1,2"), undefined, false)).release();
      first.release();
      (await second).release();
      await pool.close(closed);
    });

    await t.step(
      "tells all who wait for a context that it cannot be made, and goes on",
      async () => {
        let fail = true;
        const { pool } = poolOn(model, {
          create: (_kind, { layers }) =>
            model.createContext(
              fail ? { nCtx: 2 ** 31 - 1 } : { repeatLayers: layers, nCtx: 256, nParallel: 1 },
            ),
        });
        const errors = await Promise.all(
          [1, 2].map(() =>
            assertRejects(() => pool.acquire("text", plan("1,2"), undefined), ApiError)
          ),
        );
        assertEquals(errors.map(({ status }) => [400, 503].includes(status)), [true, true]);
        fail = false;
        (await pool.acquire("text", plan("1,2"), undefined)).release();
        await pool.close(closed);
      },
    );

    await t.step(
      "close() refuses who waits and who comes, and frees what is given back",
      async () => {
        const { pool } = poolOn(model, { maxContexts: 1 });
        const first = await pool.acquire("text", plan("1,2"), undefined);
        const waiting = ["1,2", "2,3"].map((spec) =>
          assertRejects(() => pool.acquire("text", plan(spec), undefined), Error, "closed")
        );
        await turn();
        await pool.close(closed);
        await Promise.all(waiting);
        await assertRejects(() => pool.acquire("text", plan("1,2"), undefined), Error, "closed");
        first.release();
        while (!first.context.disposed) await turn();
        assertEquals(pool.queued, 0);
      },
    );
  },
});
