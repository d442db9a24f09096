import config from "../../deno.json" with { type: "json" };

/** The package's version. */
export const VERSION: string = config.version;
