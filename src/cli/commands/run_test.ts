import { assertEquals } from "@std/assert";
import { noText, speeds } from "./run.ts";

const end = {
  finishReason: "stop" as const,
  stoppingWord: "",
  nPrompt: 1,
  nGenerated: 1,
  seed: 1,
  slot: 0,
};

Deno.test("noText() says why there is no text", () => {
  const why = (...args: Parameters<typeof noText>) => noText(...args).replace(/^.*?: /, "");
  assertEquals(why(end, false), "the model ended at once");
  assertEquals(
    why({ ...end, stoppingWord: "\n" }, false),
    'the answer began with the stop string "\\n"',
  );
  assertEquals(why(end, true), "the model ended after its reasoning");
  const cut = { ...end, finishReason: "length" as const };
  assertEquals(why(cut, true), "reasoning used up the tokens; -n N allows more");
  assertEquals(why(cut, false), "the generated tokens have no text");
  assertEquals(why(cut, false, { maxTokens: 0 }), "-n 0 asks for no tokens");
});

Deno.test("speeds() counts one token as one, and gives no speed that was not measured", () => {
  const timings = {
    promptTokens: 1,
    cachedTokens: 0,
    promptMs: 10,
    promptPerSecond: 100,
    predictedTokens: 1,
    predictedMs: 0,
    predictedPerSecond: 0,
  };
  const line = (more: Partial<typeof timings>) =>
    speeds({ ...end, timings: { ...timings, ...more } as Parameters<typeof speeds>[0]["timings"] });
  assertEquals(line({}), "prompt 1 token, 100.0 tokens/s; generated 1 token");
  assertEquals(
    line({ promptTokens: 3, promptPerSecond: Infinity, predictedTokens: 2, predictedPerSecond: 8 }),
    "prompt 3 tokens; generated 2 tokens, 8.0 tokens/s",
  );
});
