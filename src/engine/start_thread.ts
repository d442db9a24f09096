import { Worker } from "node:worker_threads";

/**
 * Starts a module of this package as a thread. A Worker of the web would keep the process alive as long as it lives; one
 * of Node can be told not to.
 *
 * @param module Name of a file beside this one, which imports worker_scope.ts first.
 * @param name Its name.
 * @param onError Told when it dies of an error.
 */
export function startThread(
  module: string,
  name: string,
  onError: (message: string) => void,
): Worker {
  const url = new URL(module, import.meta.url);
  const code = `data:text/javascript,${encodeURIComponent(`import ${JSON.stringify(url.href)};`)}`;
  // Node's Worker takes no https: URL, which a package from a registry has.
  const thread = new Worker(url.protocol === "file:" ? url : new URL(code), {
    name,
    workerData: name,
  });
  thread.on("error", (error: unknown) => onError((error as Error)?.message ?? String(error)));
  return thread;
}
