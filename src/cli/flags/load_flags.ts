import type { LoadModelOptions } from "../../engine/mod.ts";
import { fileError } from "../errors.ts";
import type { Flags } from "./parse_flags.ts";
import type { Shell } from "../terminal/shell.ts";

/**
 * llama-server's arguments that concern the model.
 *
 * @param flags Read for those of the model that are passed on.
 */
export function loadArgs(flags: Flags): Pick<LoadModelOptions, "args"> {
  const args = flags.llamaArgs((flag) => flag.atLoad === true);
  return args.length > 0 ? { args } : {};
}

/** The verbosity of a log file where the command line does not say. */
const FILE_VERBOSITY = 3;

/**
 * How much llama.cpp logs, and where.
 *
 * @param flags Read for `-v`, `-lv` and `--log-file`.
 * @param shell Where to write what is asked for by its flags.
 * @throws {Failure} If the log file cannot be written.
 */
export function logOptions(
  flags: Flags,
  shell: Shell,
): Pick<LoadModelOptions, "verbosity" | "onLog"> {
  const asked = flags.number("verbosity") ?? (shell.verbose ? 5 : undefined);
  const path = flags.text("logFile");
  if (path === undefined) {
    return asked === undefined
      ? {}
      : { verbosity: asked, onLog: (_level, line) => shell.err(`${line}\n`) };
  }
  const file = openLog(path);
  const encoder = new TextEncoder();
  return {
    verbosity: asked ?? FILE_VERBOSITY,
    onLog(_level, line) {
      file.writeSync(encoder.encode(`${line}\n`));
      if (asked !== undefined) shell.err(`${line}\n`);
    },
  };
}

function openLog(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path, { write: true, create: true, truncate: true });
  } catch (error) {
    throw fileError("write", path, error);
  }
}
