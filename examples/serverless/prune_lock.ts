// Takes out of deno.lock what only tests use; Deno fetches all that stands in there. Run by the Dockerfile, in a copy.

const lock = JSON.parse(Deno.readTextFileSync("deno.lock"));
for (const name of Object.keys(lock.specifiers)) {
  if (!lock.workspace.dependencies.includes(name)) delete lock.specifiers[name];
}
Deno.writeTextFileSync("deno.lock", JSON.stringify(lock, null, 2));
