// In full, for those who import this folder by its path, without the names of deno.json.
// deno-lint-ignore no-import-prefix
import { CORE_SCHEMA, load, mergeTag, YAMLException } from "npm:js-yaml@^5.5.0";

/** YAML 1.2, and the merge keys (`<<`) that recipes are written with. */
const schema = CORE_SCHEMA.withTags(mergeTag);

/** Lines that may be moved to the right; each costs another reading. */
const MAX_MOVED = 32;

/** Reads one YAML document. */
export function parseYaml(source: string): unknown {
  let text = source;
  for (let moved = 0;; moved++) {
    try {
      const value: unknown = load(text, { schema });
      if (value !== null && value !== undefined) return value;
      throw new SyntaxError("Cannot parse YAML: it is empty");
    } catch (error) {
      if (!(error instanceof YAMLException)) throw error;
      const { reason, mark } = error;
      if (reason !== "deficient indentation" || !mark || moved === MAX_MOVED) throw fault(error);
      // PyYAML, by which mergekit reads, lets the lines of a flow collection begin anywhere.
      const begin = mark.position - mark.column;
      text = `${mark.buffer.slice(0, begin)}${" ".repeat(40)}${mark.buffer.slice(begin)}`;
    }
  }
}

function fault({ reason, mark }: YAMLException): SyntaxError {
  if (/input is empty$/.test(reason)) return new SyntaxError("Cannot parse YAML: it is empty");
  if (/found more$/.test(reason)) {
    return new SyntaxError(
      "Cannot parse YAML: it has several documents, and a recipe is one; leave one of them",
    );
  }
  const where = mark ? ` at line ${mark.line + 1}, column ${mark.column + 1}` : "";
  return new SyntaxError(`Cannot parse YAML: ${reason}${where}`);
}
