/**
 * An environment variable. One that the program may not read counts as not set; the user is not asked for permission.
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
 * An environment variable, telling one that is not set from one that may not be read.
 *
 * @param name The variable.
 * @returns Its value; null where it is not set, undefined where the program may not read it.
 */
export function seenVariable(name: string): string | null | undefined {
  return mayLook(name) ? Deno.env.get(name) ?? null : undefined;
}
