import { NO_FIELDS } from "../checks/check_request.ts";
import { ApiError, unavailable } from "../http/api_error.ts";
import { json } from "../http/json.ts";
import { askContexts } from "../plans/ask_contexts.ts";
import { askUpstream } from "./ask_upstream.ts";
import { type Call, planByQuery } from "./call.ts";

/** What the slots of all contexts do, each with its plan. */
export async function slots({ active, life, query, settings }: Call): Promise<Response> {
  if (!settings.slots) {
    throw new ApiError(501, "This server does not show its slots: it was started with --no-slots");
  }
  const all: { is_processing: boolean }[] = [];
  const texts = life.need().pool.entries.filter(({ kind }) => kind === "text");
  for await (const { entry, text } of askContexts(texts, "/slots", active.signal)) {
    for (const slot of JSON.parse(text)) all.push({ ...slot, rys: { plan: entry.plan.spec } });
  }
  const isFull = all.every((slot) => slot.is_processing);
  if (query.get("fail_on_no_slot") && isFull) throw unavailable("no slot available", 1);
  return json(all);
}

/** Erases what a slot remembers. */
export async function eraseSlot(call: Call): Promise<Response> {
  const { name, path, query, settings: { nParallel } } = call;
  if (query.get("action") !== "erase") {
    throw new ApiError(
      501,
      `This server offers the action "erase" alone; it keeps no files of slots`,
    );
  }
  const slot = Number(name);
  if (slot >= nParallel) {
    throw new ApiError(400, `There is no slot ${slot}; there are 0..${nParallel - 1}`);
  }
  return await askUpstream(call, planByQuery(call), `${path}?action=erase`, NO_FIELDS);
}
