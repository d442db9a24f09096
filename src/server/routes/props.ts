import { ApiError } from "../http/api_error.ts";
import { isObject } from "../../json.ts";
import { modelName } from "../life/loaded_model.ts";
import { askUpstream } from "./ask_upstream.ts";
import { type Call, planByQuery } from "./call.ts";
import { serverFacts } from "./server_facts.ts";

/** What the model and the server are. */
export async function props(call: Call): Promise<Response> {
  const { life, path, settings } = call;
  const { model, plans } = life.need();
  return await askUpstream(call, planByQuery(call), path, undefined, (answer) => {
    if (!isObject(answer)) return undefined;
    return {
      ...answer,
      model_path: modelName(settings, model),
      model_alias: plans.base.name,
      endpoint_slots: settings.slots,
      rys: serverFacts(call),
    };
  });
}

/** The LoRA adapters. */
export async function loraAdapters(call: Call): Promise<Response> {
  return await askUpstream(call, planByQuery(call), call.path);
}

/** Refuses to change what the server is. */
export function unchangeable(): Response {
  throw new ApiError(501, "This server's properties are not changed by requests");
}
