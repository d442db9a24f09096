import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";

/**
 * The address of a host, after Deno has let the program listen there. (Where it does not, listening would throw where
 * nobody catches it.)
 *
 * @param host Name or address.
 * @param port Port.
 * @throws {Error} If there is no such address, or Deno does not let the program use it.
 */
export async function bindable(host: string, port: number): Promise<string> {
  const allow = async (name: string) => {
    const at = `${isIPv6(name) ? `[${name}]` : name}:${port}`;
    const { state } = await Deno.permissions.request({ name: "net", host: at });
    if (state === "granted") return;
    throw new Error(
      `Cannot listen on ${host}:${port}: Deno may not use the network; run it with --allow-net=${at}, or --allow-net`,
    );
  };
  if (/^[\d.]+$/.test(host) || isIPv6(host)) {
    await allow(host);
    return host;
  }
  await allow(host);
  const { address } = await lookup(host).catch((error) => {
    throw listenError(error, host, port);
  });
  await allow(address);
  return address;
}

/**
 * An error of listening, with what can be done about it.
 *
 * @param error What was thrown.
 * @param host Name or address.
 * @param port Port.
 */
export function listenError(error: unknown, host: string, port: number): Error {
  const code = (error as { code?: string }).code;
  const why = code === "EADDRINUSE"
    ? "the port is taken; another one is chosen with --port N (0: any free one)"
    : code === "EACCES"
    ? "permission denied; ports below 1024 are often the administrator's"
    : ["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL"].includes(code ?? "")
    ? "this machine has no such address"
    : (error as Error).message;
  return new Error(`Cannot listen on ${host}:${port}: ${why}`, { cause: error });
}
