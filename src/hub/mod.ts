/**
 * Models by their names: on the Hugging Face hub, on other servers, and in the cache that the hub's programs share.
 *
 * @module
 */

export * from "./hub_error.ts";
export { type HubOptions, type HubProgress } from "./settings.ts";
export {
  type FileName,
  formatModelName,
  type HubName,
  isRemoteName,
  type ModelName,
  parseModelName,
  type UrlName,
} from "./model_name.ts";
export { type AskedFor } from "./http.ts";
export { type FileHash } from "./repository.ts";
export { openRemote, type RemoteFile } from "./remote_file.ts";
export { fetchModel } from "./fetch_model.ts";
export { type LocalModel, type RemoteModel, resolveModel } from "./resolve.ts";
export { type NamedModel, readNamedModel } from "./read_named_model.ts";
