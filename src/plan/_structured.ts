import { parseYaml } from "./_yaml.ts";
import { show } from "./_text.ts";

/** Whether text is in the grammar, which may also begin with `layers:` or `blocks:`, and is not JSON or YAML. */
export function isGrammar(text: string): boolean {
  if (/^\uFEFF|^\s*(?:[[{%]|---|-\s)/.test(text)) return false;
  if (
    /^[ \t]*["']?(?:slices|modules|merge_method|rys_relayer|layer_indices|layer_map|layer_replication|spec|key)["']?[ \t]*:/m
      .test(text)
  ) return false;
  if (
    /^[ \t]*["']?(?:layers|blocks)["']?[ \t]*:(?:[ \t]+[[{"'|>&*!]|[ \t]*\r?\n[ \t]*-)/m.test(text)
  ) {
    return false;
  }
  return !(/\n/.test(text.trim()) && /^["']?(?:layers|blocks)["']?[ \t]*:[ \t]/m.test(text));
}

/** What JSON or YAML text holds. */
export function structured(text: string): object {
  if (/^\s*[[{]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      // Perhaps YAML; if it is not, its message says where.
    }
  }
  const value = parseYaml(text);
  if (typeof value === "object" && value !== null) return value;
  throw new TypeError(`A recipe is a mapping, not ${show(value)}`);
}
