import { type PlanInput, readPlanText } from "../../plan/mod.ts";
import { asUsage, UsageError } from "../errors.ts";
import { readInput } from "./read_input.ts";

/** Characters that make a text look like a file's name. */
const MAX_PATH = 1000;

/**
 * A plan on the command line: its text, or `@` and the name of a file with a recipe. It is read here,
 * once, and checked as far as that is possible without a model.
 *
 * @param where What messages begin with, e.g. a flag's name.
 * @param text The text.
 * @throws {UsageError} If it is not a plan.
 * @throws {Failure} If the file cannot be read.
 */
export async function planInput(where: string, text: string): Promise<PlanInput> {
  if (text.startsWith("@")) {
    const path = text.slice(1);
    if (path === "") {
      throw new UsageError(`${where} @ needs the name of a file, as in @recipe.yaml`);
    }
    return await readPlanFile(path, `${where} ${text}`);
  }
  try {
    return readPlanText(text);
  } catch (error) {
    if (isFile(text)) {
      throw new UsageError(`${where}: ${text} is a file; to read the plan from it, write @${text}`);
    }
    return asUsage(where, () => {
      throw error;
    });
  }
}

/** Like {@linkcode planInput}, but undefined for undefined. */
export async function planInputOrNone(
  where: string,
  text: string | undefined,
): Promise<PlanInput | undefined> {
  return text === undefined ? undefined : await planInput(where, text);
}

/**
 * Reads a file with a plan: the grammar, or a recipe in YAML or JSON.
 *
 * @param path The file; "-" is standard input.
 * @param where What messages about the plan begin with.
 * @throws {Failure} If it cannot be read.
 * @throws {UsageError} If it is not a plan.
 */
export async function readPlanFile(path: string, where: string): Promise<PlanInput> {
  const text = (await readInput(path)).trim();
  return asUsage(where, () => readPlanText(text));
}

function isFile(path: string): boolean {
  try {
    return path.length <= MAX_PATH && Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
