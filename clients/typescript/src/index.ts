export { SuperarmClient } from "./client.js";
export type { CallOptions, ClientOptions } from "./client.js";
export { decide, newer } from "./table.js";
export type { Served, SlateTable } from "./table.js";
export { SuperarmError } from "./errors.js";
export * from "./types.js";
