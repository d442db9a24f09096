import type { EffectivePlan, ModelInfo } from "../../engine/mod.ts";
import { planHashHex } from "../../plan/mod.ts";
import type { ServerOptions } from "../options.ts";
import { shortSpec } from "../plans/short_spec.ts";

/** Plans, and further warnings, that are remembered as logged. */
const MAX_REMEMBERED = 1000;

/** What the server tells whoever runs it. A listener that throws ends no request. */
export class ServerLog {
  readonly #onLog: ServerOptions["onLog"];
  readonly #onModel: ServerOptions["onModel"];
  readonly #said = new Set<string>();

  /** @param options Who is told. */
  constructor({ onLog, onModel }: Pick<ServerOptions, "onLog" | "onModel">) {
    this.#onLog = onLog;
    this.#onModel = onModel;
  }

  /** Logs a line. */
  line(text: string): void {
    try {
      this.#onLog?.(text);
    } catch {
      // See above.
    }
  }

  /** Logs a line, unless it was logged before. */
  once(text: string): void {
    if (this.#isNew(text)) this.line(text);
  }

  /** Logs a plan's warnings, once. */
  advise(plan: EffectivePlan): void {
    if (plan.advisories.length === 0 || !this.#isNew(planHashHex(plan.layers))) return;
    for (const text of plan.advisories) this.line(`plan ${shortSpec(plan)}: ${text}`);
  }

  /** Tells what the model says of itself. */
  model(info: ModelInfo): void {
    try {
      this.#onModel?.(info);
    } catch {
      // See above.
    }
  }

  #isNew(key: string): boolean {
    if (this.#said.has(key)) return false;
    if (this.#said.size >= MAX_REMEMBERED) this.#said.clear();
    this.#said.add(key);
    return true;
  }
}
