/**
 * Stand-in for `@std/cli`: what this project uses of it.
 *
 * @module
 */

export * from "./parse_args.ts";
export * from "./unicode_width.ts";
