import { Worker } from "node:worker_threads";

/**
 * Starts a module of this package as a thread. A web Worker would keep the process alive as long as it lives; a Node
 * thread can be told not to.
 *
 * @param module Name of a file beside this one, which imports worker_scope.ts first.
 * @param name Its name.
 * @param onError Called when an error ends it.
 */
export function startThread(
  module: string,
  name: string,
  onError: (message: string) => void,
): Worker {
  const url = new URL(module, import.meta.url);
  const code = `data:text/javascript,${encodeURIComponent(`import ${JSON.stringify(url.href)};`)}`;
  // Node's Worker does not accept https: URLs, and a package from a registry has one.
  const thread = new Worker(url.protocol === "file:" ? url : new URL(code), {
    name,
    workerData: name,
  });
  thread.on("error", (error: unknown) => onError((error as Error)?.message ?? String(error)));
  return thread;
}
