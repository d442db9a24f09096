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
