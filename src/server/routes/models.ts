import { ApiError } from "../http/api_error.ts";
import type { JsonObject } from "../../json.ts";
import { ran } from "./answer.ts";
import { askUpstream } from "./ask_upstream.ts";
import type { Call } from "./call.ts";
import { serverFacts } from "./server_facts.ts";

/** What upstream says of its one model, in OpenAI's form and in Ollama's. */
interface ModelList {
  data: JsonObject[];
  models: JsonObject[];
}

/** The model under each of its names. */
export async function models(call: Call): Promise<Response> {
  const { plans } = call.life.need();
  return await askUpstream(call, plans.base, "/v1/models", undefined, (answer) => {
    const { data: [model], models: [entry], ...rest } = answer as ModelList;
    return {
      ...rest,
      data: plans.names.map(({ name, plan }) => ({
        ...model,
        id: name,
        aliases: [],
        rys: ran(name, plan).rys,
      })),
      models: plans.names.map(({ name }) => ({ ...entry, name, model: name })),
      rys: serverFacts(call),
    };
  });
}

/** The model under one name, which may have a plan in it. */
export async function model(call: Call): Promise<Response> {
  const { plans } = call.life.need();
  const name = decode(call.name!);
  const named = plans.names.find((one) => one.name === name) ??
    (name.includes("@") ? plans.choose(name, undefined) : undefined);
  if (!named) throw new ApiError(404, `There is no model ${JSON.stringify(name.slice(0, 100))}`);
  return await askUpstream(call, plans.base, "/v1/models", undefined, (answer) => {
    const { data: [model] } = answer as ModelList;
    return { ...model, id: named.name, rys: ran(named.name, named.plan).rys };
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
