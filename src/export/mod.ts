// Writes models to files.

export { ExportError } from "./export_error.ts";
export { exportModel, type ExportOptions, type ExportReport } from "./export_model.ts";
