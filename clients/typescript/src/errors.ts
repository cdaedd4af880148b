/** The service refused a request, or could not be reached (`status` 0). */
export class SuperarmError extends Error {
  constructor(
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** The kind of error as the service names it, such as `unknown`, `conflict` or `invalid`. */
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "SuperarmError";
  }
}
