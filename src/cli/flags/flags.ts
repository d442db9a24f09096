import { type CommandName, COMMANDS, type Option } from "../../options/option.ts";
import { type OptionId, OPTIONS } from "../../options/table.ts";

export { type CommandName, COMMANDS, GROUPS } from "../../options/option.ts";

/** One flag of the command line. */
export type Flag = Option;

/** Name of a flag in the program's own code. */
export type FlagId = OptionId;

/** All flags. */
export const FLAGS: readonly Flag[] = OPTIONS;

/**
 * The flag that a name means.
 *
 * @param name As written, dashes included.
 * @param command The command it was given to.
 */
export function findFlag(name: string, command: CommandName): Flag | undefined {
  return flagsOf(command).find((flag) => namesOf(flag).includes(name));
}

/**
 * The flags of a command.
 *
 * @param command The command.
 */
export function flagsOf(command: CommandName): Flag[] {
  return FLAGS.filter((flag) => flag.commands.includes(command));
}

/**
 * The commands that know a flag.
 *
 * @param name As written, dashes included.
 */
export function commandsOf(name: string): CommandName[] {
  const found = FLAGS.filter((flag) => namesOf(flag).includes(name));
  return COMMANDS.filter((command) => found.some((flag) => flag.commands.includes(command)));
}

/**
 * All names of a flag, those that switch it off as well.
 *
 * @param flag The flag.
 */
export function namesOf({ names, off = [] }: Flag): string[] {
  return [...names, ...off];
}
