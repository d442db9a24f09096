import { mayLook } from "../environment.ts";

export { environment, mayLook } from "../environment.ts";

/**
 * An environment variable, telling one that is not set from one that may not be read.
 *
 * @param name The variable.
 * @returns Its value; null where it is not set, undefined where the program may not read it.
 */
export function seenVariable(name: string): string | null | undefined {
  return mayLook(name) ? Deno.env.get(name) ?? null : undefined;
}
