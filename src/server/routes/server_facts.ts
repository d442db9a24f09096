import { withoutPlaces } from "../http/api_error.ts";
import { VERSION } from "../version.ts";
import type { ServerParts } from "./call.ts";

/**
 * What a page or a client may want to know of the server.
 *
 * @param parts The server.
 */
export function serverFacts({ life, settings, startedAt }: ServerParts): Record<string, unknown> {
  const { model, plans, pool, boot } = life.need();
  const { plan } = plans.base;
  const { gpu, gpuWhy } = model.info;
  return {
    version: VERSION,
    model: plans.base.name,
    desc: model.info.desc,
    architecture: model.info.arch,
    n_layer: model.info.nLayer,
    n_layer_eff: plan.nLayerEff,
    plan: plan.spec,
    advisories: plan.advisories,
    aliases: Object.fromEntries(plans.aliases.map(({ name, plan }) => [name, plan.spec])),
    n_ctx: pool.entries[0]?.context?.info.nCtx ?? null,
    n_parallel: settings.nParallel,
    max_contexts: settings.maxContexts,
    contexts: pool.entries.map(({ kind, plan, context, running, waiting }) => ({
      kind,
      plan: plan.spec,
      n_layer_eff: plan.nLayerEff,
      kv_bytes: context?.info.kvBytes ?? null,
      recurrent_bytes: context?.info.recurrentBytes ?? null,
      compute_bytes: context?.info.computeBytes ?? null,
      running,
      waiting,
    })),
    queued: pool.queued,
    running: pool.running,
    device: gpu ? "gpu" : "cpu",
    gpu: gpu && {
      vendor: gpu.vendor,
      description: gpu.description,
      software: gpu.software,
      layers: gpu.layers,
      bytes: gpu.bytes,
      cpu_bytes: gpu.cpuBytes,
    },
    gpu_why: withoutPlaces(gpuWhy),
    model_bytes: model.info.modelBytes,
    boot,
    up_ms: Math.round(performance.now() - startedAt),
    deno: Deno.version.deno,
  };
}
