export { SuperarmClient } from "./client.js";
export { PageFeedback, sendFeedbackBeacon } from "./beacon.js";
export { SuperarmError } from "./errors.js";
export * from "./types.js";
