import { isObject } from "../../json.ts";
import { markAnswer, ran } from "./answer.ts";
import { askUpstream } from "./ask_upstream.ts";
import type { Call } from "./call.ts";
import { prepare } from "./prepare.ts";

/** Tokens, templates, counts: what upstream answers without a slot, and what says which plan it was asked for. */
export async function ask(call: Call): Promise<Response> {
  const { named, body, warnings } = await prepare(call, "any");
  call.log.advise(named.plan);
  return await askUpstream(call, named, call.path, body, (answer) => {
    markAnswer(answer, ran(named.name, named.plan, undefined, warnings));
  });
}

/** Tokens of a text and the text of tokens, in which no plan has a part. */
export async function tokens(call: Call): Promise<Response> {
  const { named, body, warnings } = await prepare(call, "any");
  call.log.advise(named.plan);
  return await askUpstream(call, named, call.path, body, (answer) => {
    if (warnings.length > 0 && isObject(answer)) return { ...answer, rys: { warnings } };
  });
}
