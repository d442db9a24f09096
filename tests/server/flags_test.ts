// What people copy from llama-server's command lines, on the server as a program.

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Option } from "../../src/options/option.ts";
import { OPTIONS } from "../../src/options/table.ts";
import { type Child, startChild } from "./_child.ts";

type Json = Record<string, unknown>;

async function ask({ origin }: Child, path: string, body?: unknown): Promise<Json> {
  const response = await fetch(origin + path, {
    ...body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
  });
  return await response.json();
}

/** Numbers of the sampler that requests and flags can say. */
const numbers = (OPTIONS as readonly Option[]).filter(({ field, kind, llama, id }) =>
  field !== undefined && llama !== undefined && (kind === "integer" || kind === "number") &&
  id !== "maxTokens" && id !== "seed"
);

/** A value of an option that is not its default. */
const other = ({ min = 0, max = 1, default: usual, kind }: Option): number =>
  [kind === "integer" ? 1 : 0.5, 2, 0.25].find((n) => n !== usual && n >= min && n <= max)!;

async function settings(child: Child): Promise<Record<string, number>> {
  const { default_generation_settings } = await ask(child, "/props");
  return (default_generation_settings as { params: Record<string, number> }).params;
}

Deno.test("defaults of the table are llama.cpp's, and each flag changes its own", async () => {
  const near = (got: number, want: number, name: string) =>
    assert(Math.abs(got - want) < 1e-6, `${name}: ${got}, not ${want}`);
  {
    await using child = await startChild();
    const params = await settings(child);
    for (const { field, default: usual } of numbers) {
      near(params[field!]!, Number(usual), field!);
    }
  }
  await using child = await startChild({
    args: [...numbers.flatMap((row) => [row.names[0]!, String(other(row))]), "--ignore-eos"],
  });
  const params = await settings(child);
  assertEquals(params.ignore_eos as unknown, true);
  for (const row of numbers) near(params[row.field!]!, other(row), row.field!);
});

Deno.test("serve takes llama-server's further flags", async () => {
  await using child = await startChild({
    args: [
      ...["--seed", "77", "--temp", "0", "-j", '{"const":"42"}', "-a", "one,two"],
      ...["--no-slots", "--api-prefix", "/llama/", "--cors-origins", "https://a.example,localhost"],
      ...["--chat-template", "{{ wish }}{{ messages[0].content }}"],
      ...["--chat-template-kwargs", '{"wish":"Please: "}', "-n", "6"],
      ...["--mlock", "-ts", "1,1", "--reasoning", "off", "-r", "nothing says this"],
    ],
  }, { isReady: false });
  const { origin } = child;
  while ((await fetch(`${origin}/llama/ready`).then((r) => (r.body?.cancel(), r.status))) !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const under = { ...child, origin: `${origin}/llama` } as Child;

  const answer = await ask(under, "/completion", { prompt: "A cat" });
  assertEquals(answer.content, '"42"');
  assertEquals((answer.rys as Json).seed, 77);
  assertEquals(answer.model, "one");
  const own = await ask(under, "/completion", { prompt: "A cat", seed: 3, json_schema: {} });
  assertEquals((own.rys as Json).seed, 3);

  const { prompt } = await ask(under, "/apply-template", {
    messages: [{ role: "user", content: "sing" }],
  });
  assertEquals(prompt, "Please: sing");

  const { data } = await ask(under, "/v1/models");
  assertEquals((data as { id: string }[]).map(({ id }) => id), ["one", "two"]);
  const two = await ask(under, "/completion", { prompt: "A cat", model: "two" });
  assertEquals(two.model, "two");

  const slots = await fetch(`${under.origin}/slots`);
  assertEquals(slots.status, 501);
  assertMatch(await slots.text(), /--no-slots/);
  assertEquals((await ask(under, "/props")).endpoint_slots, false);
  const bare = await fetch(`${origin}/v1/models`);
  await bare.body?.cancel();
  assertEquals(bare.status, 404);

  const from = async (page: string) => {
    const response = await fetch(`${under.origin}/health`, { headers: { origin: page } });
    await response.body?.cancel();
    return response.status;
  };
  assertEquals(await from("https://a.example"), 200);
  assertEquals(await from("http://localhost:5173"), 200);
  assertEquals(await from("https://b.example"), 403);
  assertMatch(child.stderr(), /^note: without effect here: --mlock, -ts$/m);
});

Deno.test("serve reads llama-server's variables", async () => {
  await using child = await startChild({ args: ["--top-k", "9"] }, {
    env: {
      LLAMA_ARG_ALIAS: "deep=26,34&named",
      LLAMA_ARG_TOP_P: "0.5",
      LLAMA_ARG_TOP_K: "3",
      LLAMA_ARG_NO_ENDPOINT_SLOTS: "1",
    },
  });
  const { data } = await ask(child, "/v1/models");
  const models = data as { id: string; rys: { plan: string } }[];
  assertEquals(models.map(({ id, rys }) => `${id} ${rys.plan}`), ["named none", "deep 26,34"]);
  const { top_p, top_k } = await settings(child);
  assertEquals([top_p, top_k], [0.5, 9]);
  assertEquals((await ask(child, "/props")).endpoint_slots, false);
});

Deno.test("--dry-sequence-breaker replaces the defaults in every context", async () => {
  await using child = await startChild({
    args: ["--dry-sequence-breaker", "x", "--dry-sequence-breaker", "y", "--dry-multiplier", "1"],
    maxContexts: 2,
  });
  for (const repeat_layers of ["none", "1,2", "2,3"]) {
    const answer = await ask(child, "/completion", {
      ...{ prompt: "A cat", n_predict: 1, repeat_layers },
    });
    const { dry_sequence_breakers: breakers } = answer.generation_settings as Json;
    assertEquals(breakers, ["x", "y"]);
  }
  assertEquals(child.stderr().includes("DEPRECATED"), false);
});

Deno.test("requests may say parse_tool_calls and generation_prompt, as upstream documents", async () => {
  await using child = await startChild();
  const messages = [{ role: "user", content: "Hello" }];
  for (const more of [{ parse_tool_calls: false }, { generation_prompt: "<think>" }]) {
    const { choices } = await ask(child, "/v1/chat/completions", {
      ...{ messages, max_tokens: 2, ...more },
    });
    assertEquals((choices as unknown[]).length, 1);
    const { content } = await ask(child, "/completion", { prompt: "A", n_predict: 2, ...more });
    assertEquals(typeof content, "string");
  }
  const { error } = await ask(child, "/completion", { prompt: "A", parse_tool_calls: "no" });
  assertMatch((error as { message: string }).message, /"parse_tool_calls" must be true or false/);
});

Deno.test("serve ends where a default of its requests cannot be used", async () => {
  for (
    const [args, said] of [
      [["-j", '{"type":"nope"}'], /--json-schema: JSON schema conversion failed/],
      [["--grammar", "root ::= ["], /grammar/],
    ] as const
  ) {
    await using child = await startChild({ args: [...args] }, { isReady: false });
    const { code } = await child.ended;
    assert(code !== 0);
    assertMatch(child.stderr(), said);
    assertEquals(child.stderr().includes("usage:"), false, child.stderr());
  }
});
