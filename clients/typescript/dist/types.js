// The bodies and replies of the HTTP interface. A test compares the names of the fields with /openapi.json.
export {};
