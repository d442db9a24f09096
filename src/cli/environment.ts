/**
 * A variable of the environment. Where the program may not read it, it is as if it were not set, and nobody is asked.
 *
 * @param name The variable.
 * @returns Its value; undefined where it is not set or empty.
 */
export function environment(name: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) || undefined : undefined;
}
