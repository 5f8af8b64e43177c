/** What caused the error: the caller, the MCP server, or Switchboard. */
type Fault = 'client' | 'server' | 'switchboard';

interface ErrorKind {
  /** The HTTP status, if the error is the response to an HTTP request. */
  http: number;
  /** The error code, if the error is the response to a JSON-RPC request. */
  rpc: number;
  fault: Fault;
  /** Whether the same request may succeed later without any change. */
  retryable: boolean;
  meaning: string;
}

/** Every error that Switchboard itself raises. docs/errors.md shows the same table. */
export const errorTable = {
  parse_error: client(400, -32700, 'The message is not valid JSON, or not valid UTF-8.'),
  invalid_request: client(400, -32600, 'The message is valid JSON, but not a valid JSON-RPC message.'),
  method_not_found: client(404, -32601, 'No such method.'),
  invalid_params: client(400, -32602, 'The parameters do not fit the method.'),
  unknown_tool: client(404, -32602, 'No server in scope offers a tool of that name.'),
  unknown_prompt: client(404, -32602, 'No server in scope offers a prompt of that name.'),
  unknown_resource: client(404, -32002, 'No server in scope has a resource of that URI.'),
  unsupported_version: client(
    400,
    -32022,
    'The protocol version of the request is not supported; `supported` in the data lists those that are.',
  ),
  header_mismatch: client(
    400,
    -32020,
    'A header that must repeat a value of the message is missing or differs.',
  ),
  missing_capability: client(
    400,
    -32021,
    'The client lacks a capability that the request needs; `requiredCapabilities` in the data names it.',
  ),
  session_required: client(400, -32600, 'The request needs an Mcp-Session-Id header.'),
  unknown_session: client(404, -32600, 'The session does not exist or has expired: initialize again.'),
  too_many_sessions: row(503, -32603, 'client', true, 'The limit of open sessions is reached.'),
  too_many_requests: row(
    429,
    -32603,
    'client',
    true,
    'A limit of requests or of concurrent calls is reached; `retryAfterMs` in the data says how long to wait.',
  ),
  repeated_header: client(400, -32600, 'A header that must be unique is repeated.'),
  unauthorized: client(
    401,
    -32600,
    'With authentication, the request has no valid key; without, it is not from a process of the user that runs Switchboard, and has no valid token. See [access](access.md) and [who is let in](operations.md#who-is-let-in).',
  ),
  forbidden: client(
    403,
    -32600,
    'The sender is known, but its role or a rule does not allow this; see [roles and rules](access.md).',
  ),
  forbidden_origin: client(
    403,
    -32600,
    'The request comes from a web page of another origin, or its Host header does not name Switchboard.',
  ),
  not_found: client(404, -32601, 'No such path.'),
  method_not_allowed: client(405, -32600, 'The path does not support that HTTP method.'),
  not_acceptable: client(406, -32600, 'The Accept header allows no content type that Switchboard can send.'),
  unsupported_media_type: client(
    415,
    -32600,
    'The Content-Type is not application/json; every POST, PUT and PATCH needs it.',
  ),
  too_large: client(413, -32600, 'The message is larger than the limit.'),
  request_timeout: row(408, -32600, 'client', true, 'The request arrived too slowly.'),
  too_many_connections: row(503, -32603, 'client', true, 'The limit of open connections is reached.'),
  invalid_config: client(
    400,
    -32603,
    'The configuration is invalid; the message says where, and how to fix it.',
  ),
  unknown_project: client(404, -32602, 'There is no project with that id or name.'),
  invalid_input: client(400, -32602, 'The input is invalid; `problems` in the details names each field.'),
  conflict: client(
    409,
    -32600,
    'The request conflicts with the current state, usually because the name is taken. The message says what to do.',
  ),
  read_only: client(409, -32600, 'It cannot be changed here; the message says where it is defined.'),
  version_conflict: client(412, -32600, 'It has changed since it was read: read it again, then change it.'),
  missing_secret: client(
    400,
    -32602,
    'The project lacks a secret that is needed; the message names it, and says how to set it.',
  ),
  key_file_failed: row(
    500,
    -32603,
    'switchboard',
    true,
    'The file of the encryption key cannot be written, and secrets stay unchanged; the message says why.',
  ),
  no_database: client(503, -32603, 'This needs a database, and Switchboard runs without one.'),
  database_unavailable: row(
    503,
    -32603,
    'switchboard',
    true,
    'The database cannot be reached. Calls continue; changes fail.',
  ),
  server_start_failed: server(
    502,
    true,
    'The server could not be started or reached, or did not finish the handshake.',
  ),
  server_loop: client(508, -32603, 'The server leads back to this Switchboard, or through too many others.'),
  server_unavailable: server(503, true, 'The connection to the server was lost, or the server is stopped.'),
  server_busy: server(503, true, 'Too many calls are queued for the server.'),
  no_backends: server(
    503,
    true,
    'No server of the group is available; the message gives the reason for each.',
  ),
  no_isolation: row(
    503,
    -32603,
    'switchboard',
    false,
    'A hosted server cannot run, because no sandbox is available. The message says what to install.',
  ),
  server_error: server(
    502,
    false,
    'A hosted server returned an error, `rpc` in the details; [its code](hosting.md#errors-of-servers) decides the HTTP status.',
  ),
  server_protocol_error: server(502, false, 'The server sent something that is not MCP.'),
  answer_too_large: server(502, false, 'The server sent a message larger than the limit.'),
  call_timeout: server(504, true, 'The server did not respond in time.'),
  model_unavailable: server(
    502,
    true,
    "The model's API cannot be reached, is overloaded, or interrupted a response.",
  ),
  model_refused: client(
    502,
    -32603,
    "The model's API rejected the request; the message says why: the key, the name of the model, the size.",
  ),
  client_unavailable: client(502, -32603, 'A server sent a request that no client can answer.'),
  cancelled: client(499, -32603, 'The caller cancelled the chat.'),
  listener_failed: client(
    500,
    -32603,
    "Your program's listener for the events of a chat threw an error, which is the cause.",
  ),
  internal: row(500, -32603, 'switchboard', false, 'A fault in Switchboard itself.'),
} satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorTable;

export class SwitchboardError extends Error {
  readonly code: ErrorCode;
  /** Details for programs, sent to the client. Never secrets. */
  readonly data: Record<string, unknown>;

  constructor(
    code: ErrorCode,
    message: string,
    more: { cause?: unknown; data?: Record<string, unknown> } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'SwitchboardError';
    this.code = code;
    this.data = more.data ?? {};
  }

  get kind(): ErrorKind {
    return errorTable[this.code];
  }
}

/** For requests that arrive or are unfinished while Switchboard stops. */
export function stopping(): SwitchboardError {
  return new SwitchboardError('server_unavailable', 'Switchboard is stopping: try again when it is back.');
}

export function asSwitchboardError(thrown: unknown): SwitchboardError {
  if (thrown instanceof SwitchboardError) return thrown;
  return new SwitchboardError('internal', thrown instanceof Error ? thrown.message : String(thrown), {
    cause: thrown,
  });
}

/** An error of the client, which the same request gets again. */
function client(http: number, rpc: number, meaning: string): ErrorKind {
  return row(http, rpc, 'client', false, meaning);
}

function server(http: number, retryable: boolean, meaning: string): ErrorKind {
  return row(http, -32603, 'server', retryable, meaning);
}

function row(http: number, rpc: number, fault: Fault, retryable: boolean, meaning: string): ErrorKind {
  return { http, rpc, fault, retryable, meaning };
}

/** Whether the rest of a request's body may still arrive after such a response, and must not be read as the next request. */
export function leavesBody(code: ErrorCode): boolean {
  return code === 'too_large' || code === 'request_timeout';
}
