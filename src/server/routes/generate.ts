import { withSampling } from "../checks/check_request.ts";
import { leftOutTools } from "../checks/left_out_tools.ts";
import { ran } from "./answer.ts";
import type { Call, Streaming } from "./call.ts";
import { isResponses, prepare } from "./prepare.ts";
import { relay } from "./relay.ts";
import { responseFields } from "./response_fields.ts";

/** Chats, completions, responses, messages and infills: what generates text in a slot. */
export async function generate(call: Call): Promise<Response | Streaming> {
  const { loaded, given, named, body, warnings } = await prepare(call, "any");
  const { active, items, log, path, settings } = call;
  log.advise(named.plan);
  const wish = body.seed ?? settings.seed;
  const seed = typeof wish === "number" && wish >= 0
    ? wish
    : crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
  const what = isResponses(path)
    ? {
      ...ran(named.name, named.plan, seed, [...warnings, ...leftOutTools(given.tools)]),
      fields: responseFields(given),
      ...given.store === false ? {} : { keep: (output: unknown) => items.keep(output) },
    }
    : ran(named.name, named.plan, seed, warnings);
  const context = await active.enter(loaded.pool, "text", named.plan, true);
  return await relay(call, context, withSampling(body, seed, loaded.model.info.nVocab), what);
}
