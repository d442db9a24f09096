/**
 * What Deno's WebGPU and Mesa's drivers read from the environment on Linux, set if it is not set and setting it is allowed.
 *
 * @module
 */

/**
 * Names Vulkan as the only backend. Left alone, Deno also loads OpenGL, which lacks what the engine needs and whose exit
 * handlers can end a finished process with a segmentation fault. Gives Mesa a runtime folder as well, as it writes an
 * error to the terminal without one.
 */
export function prepareDriverEnv(): void {
  if (Deno.build.os !== "linux") return;
  const isAllowed = (name: string) =>
    Deno.permissions.querySync({ name: "env", variable: name }).state === "granted";
  if (isAllowed("DENO_WEBGPU_BACKEND") && !Deno.env.get("DENO_WEBGPU_BACKEND")) {
    Deno.env.set("DENO_WEBGPU_BACKEND", "vulkan");
  }
  if (!isAllowed("XDG_RUNTIME_DIR") || Deno.env.get("XDG_RUNTIME_DIR")) return;
  const folder = runtimeFolder();
  if (folder) Deno.env.set("XDG_RUNTIME_DIR", folder);
}

let isHeld = false;

/**
 * Keeps the graphics driver loaded until the process ends. Under Deno 2.9 it is unloaded along with the thread that asked
 * for an adapter; a process that exits at that moment calls the exit handlers of a driver that is no longer in memory.
 */
export function holdDriver(): void {
  if (isHeld || !navigator.gpu) return;
  isHeld = true;
  navigator.gpu.requestAdapter().catch(() => {}); // loads the driver before it returns
}

/** A folder that only this user can access: the system's, else one of our own. */
function runtimeFolder(): string | undefined {
  try {
    const uid = Deno.uid();
    const isPrivate = (path: string) => {
      const { isDirectory, mode, uid: owner } = Deno.lstatSync(path);
      return isDirectory && owner === uid && ((mode ?? 0) & 0o077) === 0;
    };
    try {
      if (isPrivate(`/run/user/${uid}`)) return `/run/user/${uid}`;
    } catch {
      // the system has none
    }
    const cache = Deno.env.get("XDG_CACHE_HOME") || `${Deno.env.get("HOME")}/.cache`;
    if (Deno.permissions.querySync({ name: "write", path: cache }).state !== "granted") return;
    const own = `${cache}/rys-edge/runtime`;
    Deno.mkdirSync(own, { recursive: true, mode: 0o700 });
    return isPrivate(own) ? own : undefined;
  } catch {
    return undefined; // not allowed, or no home folder: Mesa's line is only noise
  }
}
