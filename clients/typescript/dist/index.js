export { SuperarmClient } from "./client.js";
export { SuperarmError } from "./errors.js";
export * from "./types.js";
