import type { EffectivePlan, Model, PlanInput } from "../../engine/mod.ts";
import { ApiError } from "../http/api_error.ts";

/** A plan under a name. */
export interface NamedPlan {
  /** What requests call it. */
  name: string;
  /** The plan. */
  plan: EffectivePlan;
}

/** Characters of a plan in a request. */
const MAX_SPEC = 16_384;

/** Finds the plan of a request. */
export class PlanChoice {
  /** The plan of requests that name none, under the model's name. */
  readonly base: NamedPlan;
  /** Further names. */
  readonly aliases: readonly NamedPlan[];
  readonly #model: Model;
  readonly #strict: boolean;

  /**
   * @param model The model.
   * @param name Its name.
   * @param repeatLayers Plan of requests that name none.
   * @param aliases Named plans; without a plan it is that one.
   * @param strict Whether other names are refused.
   * @throws {SyntaxError | RangeError | TypeError} If a plan is wrong; the message names it.
   */
  constructor(
    model: Model,
    name: string,
    repeatLayers: PlanInput | undefined,
    aliases: Readonly<Record<string, PlanInput | undefined>>,
    strict: boolean,
  ) {
    this.#model = model;
    this.#strict = strict;
    this.base = { name, plan: model.expandPlan(repeatLayers) };
    this.aliases = Object.entries(aliases).map(([alias, input]) => {
      if (input === undefined) return { name: alias, plan: this.base.plan };
      try {
        return { name: alias, plan: model.expandPlan(input) };
      } catch (error) {
        (error as Error).message = `alias ${JSON.stringify(alias)}: ${(error as Error).message}`;
        throw error;
      }
    });
  }

  /** All names, the model's own first. */
  get names(): NamedPlan[] {
    return [this.base, ...this.aliases];
  }

  /**
   * The plan that a request asks for: by its `repeat_layers`, else by its `model`, which may be a name, or a name and a
   * plan as in `"demo@26,34"`.
   *
   * @param model The request's `model`.
   * @param repeatLayers The request's `repeat_layers`.
   * @throws {ApiError} If the plan is wrong, or the name unknown and names are strict.
   */
  choose(model: unknown, repeatLayers: unknown): NamedPlan {
    if (model !== undefined && model !== null && typeof model !== "string") {
      throw new ApiError(400, `"model" must be a string, not ${kind(model)}`);
    }
    const named = this.#byName(model ?? "", repeatLayers != null);
    if (repeatLayers === undefined || repeatLayers === null) return named;
    const plan = this.#read("repeat_layers", repeatLayers);
    return { name: `${this.base.name}@${plan.spec}`, plan };
  }

  #byName(name: string, planGiven: boolean): NamedPlan {
    if (name === "") return this.base;
    const known = this.names.find((one) => one.name === name);
    if (known) return known;
    const at = name.lastIndexOf("@");
    if (at > 0 && !planGiven) {
      const base = name.slice(0, at);
      if (this.#strict) this.#known(base);
      const plan = this.#read("model", name.slice(at + 1));
      return { name: `${this.base.name}@${name.slice(at + 1)}`, plan };
    }
    if (this.#strict) this.#known(name);
    return this.base;
  }

  #known(name: string): void {
    if (this.names.some((one) => one.name === name)) return;
    const names = this.names.map((one) => JSON.stringify(one.name)).join(", ");
    throw new ApiError(
      404,
      `There is no model ${JSON.stringify(name.slice(0, 100))}; there are ${names}`,
      {
        fields: { param: "model" },
      },
    );
  }

  #read(param: string, input: unknown): EffectivePlan {
    const fields = { param };
    if (typeof input !== "string" && typeof input !== "object") {
      throw new ApiError(400, `"${param}" must be a plan such as "26,34", not ${kind(input)}`, {
        fields,
      });
    }
    if (JSON.stringify(input).length > MAX_SPEC) {
      throw new ApiError(400, `"${param}" has more than ${MAX_SPEC} characters`, { fields });
    }
    try {
      return this.#model.expandPlan(input as PlanInput);
    } catch (error) {
      throw new ApiError(400, (error as Error).message, { fields });
    }
  }
}

function kind(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
