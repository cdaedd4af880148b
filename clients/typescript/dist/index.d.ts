export { SuperarmClient } from "./client.js";
export type { CallOptions, ClientOptions } from "./client.js";
export { SuperarmError } from "./errors.js";
export * from "./types.js";
