/**
 * A variable of the environment. Where the program may not read it, it is as if it were not set, and nobody is asked.
 *
 * @param name The variable.
 * @returns Its value; undefined where it is not set or empty.
 */
export function environment(name: string): string | undefined {
  return mayLook(name) ? Deno.env.get(name) || undefined : undefined;
}

/**
 * Whether the program may read a variable without asking.
 *
 * @param name The variable.
 */
export function mayLook(name: string): boolean {
  return Deno.permissions.querySync({ name: "env", variable: name }).state === "granted";
}

/**
 * A variable of the environment, telling apart what is not set from what may not be read.
 *
 * @param name The variable.
 * @returns Its value; null where it is not set, undefined where the program may not read it.
 */
export function seenVariable(name: string): string | null | undefined {
  return mayLook(name) ? Deno.env.get(name) ?? null : undefined;
}
