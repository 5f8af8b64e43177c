/** Whose doing an error is: the caller's, the MCP server's behind us, or ours. */
type Fault = 'client' | 'server' | 'switchboard';

interface ErrorKind {
  /** HTTP status where the error is the answer to an HTTP request itself. */
  http: number;
  /** JSON-RPC error code where the error is the answer to a JSON-RPC request. */
  rpc: number;
  fault: Fault;
  /** Whether the same request may succeed later without anybody changing anything. */
  retryable: boolean;
  meaning: string;
}

/** Every error that Switchboard itself raises. docs/errors.md shows this table; a test keeps the two the same. */
export const errorTable = {
  parse_error: row(400, -32700, 'client', false, 'The message is not valid JSON, or not valid UTF-8.'),
  invalid_request: row(
    400,
    -32600,
    'client',
    false,
    'Valid JSON, but not a JSON-RPC message that we accept.',
  ),
  method_not_found: row(404, -32601, 'client', false, 'No such method.'),
  invalid_params: row(400, -32602, 'client', false, 'The parameters do not fit the method.'),
  unknown_tool: row(404, -32602, 'client', false, 'No server in scope offers a tool of that name.'),
  unknown_prompt: row(404, -32602, 'client', false, 'No server in scope offers a prompt of that name.'),
  unknown_resource: row(404, -32002, 'client', false, 'No server in scope has a resource of that URI.'),
  unsupported_version: row(
    400,
    -32022,
    'client',
    false,
    'The request names a protocol version that we do not speak; `supported` in the data has those that we do.',
  ),
  header_mismatch: row(
    400,
    -32020,
    'client',
    false,
    'A header that has to repeat what stands in the message is missing, or says something else.',
  ),
  missing_capability: row(
    400,
    -32021,
    'client',
    false,
    'The request needs a client that can do more; `requiredCapabilities` in the data says what.',
  ),
  session_required: row(400, -32600, 'client', false, 'The request needs an Mcp-Session-Id header.'),
  unknown_session: row(
    404,
    -32600,
    'client',
    false,
    'The session does not exist or has expired: initialize again.',
  ),
  too_many_sessions: row(503, -32603, 'client', true, 'The limit of open sessions is reached.'),
  repeated_header: row(400, -32600, 'client', false, 'A header is there twice that only one can be of.'),
  unauthorized: row(
    401,
    -32600,
    'client',
    false,
    'The request is not from a process of the user that runs Switchboard, and carries no token; see [who is let in](operations.md#who-is-let-in).',
  ),
  forbidden_origin: row(
    403,
    -32600,
    'client',
    false,
    'The request is from a web page of another origin, or not addressed to us (Host).',
  ),
  not_found: row(404, -32601, 'client', false, 'No such path.'),
  method_not_allowed: row(405, -32600, 'client', false, 'The path does not take that HTTP method.'),
  not_acceptable: row(
    406,
    -32600,
    'client',
    false,
    'The Accept header leaves no content type that we can answer with.',
  ),
  unsupported_media_type: row(
    415,
    -32600,
    'client',
    false,
    'The Content-Type is not application/json; every POST, PUT and PATCH needs it.',
  ),
  too_large: row(413, -32600, 'client', false, 'The message is larger than the limit.'),
  request_timeout: row(408, -32600, 'client', true, 'The request came too slowly.'),
  too_many_connections: row(503, -32603, 'client', true, 'The limit of open connections is reached.'),
  invalid_config: row(
    400,
    -32603,
    'client',
    false,
    'The configuration is wrong; the message says where and how to fix it.',
  ),
  unknown_project: row(404, -32602, 'client', false, 'There is no project of that id or name.'),
  invalid_input: row(
    400,
    -32602,
    'client',
    false,
    'What was sent to the API is wrong; `problems` in the details names each field.',
  ),
  conflict: row(
    409,
    -32600,
    'client',
    false,
    'What is there stands in the way: most often something of that name. The message says what to do.',
  ),
  read_only: row(
    409,
    -32600,
    'client',
    false,
    'It cannot be changed here; the message says where it comes from.',
  ),
  version_conflict: row(
    412,
    -32600,
    'client',
    false,
    'It was changed by somebody else since: read it again, then change it.',
  ),
  missing_secret: row(
    400,
    -32602,
    'client',
    false,
    'The project has no secret of the name that is needed; the message says which, and how to set it.',
  ),
  key_file_failed: row(
    500,
    -32603,
    'switchboard',
    true,
    'The key file of secrets cannot be written, and what was sealed stays as it was; the message says why.',
  ),
  no_database: row(503, -32603, 'client', false, 'Switchboard runs without a database, and this needs one.'),
  database_unavailable: row(
    503,
    -32603,
    'switchboard',
    true,
    'The database cannot be reached. Calls go on; what would have to be written fails.',
  ),
  server_start_failed: row(
    502,
    -32603,
    'server',
    true,
    'The server could not be started or reached, or did not finish the handshake.',
  ),
  server_loop: row(
    508,
    -32603,
    'client',
    false,
    'The server leads back to this Switchboard, or through too many others.',
  ),
  server_unavailable: row(
    503,
    -32603,
    'server',
    true,
    'The connection to the server broke, or it is stopped.',
  ),
  server_busy: row(503, -32603, 'server', true, 'Too many calls wait for the server already.'),
  no_backends: row(
    503,
    -32603,
    'server',
    true,
    'None of the servers that could take the call is available; the message says what is known of each.',
  ),
  no_isolation: row(
    503,
    -32603,
    'switchboard',
    false,
    'A hosted server cannot be run: nothing that isolates it is available. The message says what to install.',
  ),
  server_error: row(
    502,
    -32603,
    'server',
    false,
    'A hosted server answered with an error, `rpc` in the details; [its code](hosting.md#errors-of-servers) decides on the HTTP status.',
  ),
  server_protocol_error: row(502, -32603, 'server', false, 'The server sent something that is not MCP.'),
  answer_too_large: row(502, -32603, 'server', false, 'The server sent a message larger than the limit.'),
  call_timeout: row(504, -32603, 'server', true, 'The server did not answer in time.'),
  model_unavailable: row(
    502,
    -32603,
    'server',
    true,
    'The API of the model cannot be reached, is overloaded, or broke off in the middle of an answer.',
  ),
  model_refused: row(
    502,
    -32603,
    'client',
    false,
    'The API of the model does not take the request; the message says why: the key, the name of the model, the size.',
  ),
  client_unavailable: row(
    502,
    -32603,
    'client',
    false,
    'A server asked something that no client can be asked for.',
  ),
  cancelled: row(499, -32603, 'client', false, 'Whoever asked for a chat has cancelled it.'),
  listener_failed: row(
    500,
    -32603,
    'client',
    false,
    'A listener of your program that was told of the events of a chat threw an error, which is the cause.',
  ),
  internal: row(500, -32603, 'switchboard', false, 'A fault in Switchboard itself.'),
} satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorTable;

export class SwitchboardError extends Error {
  readonly code: ErrorCode;
  /** Facts for programs, sent along on the wire. Never secrets. */
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

/** For whatever comes while Switchboard stops, or was not done when it had to. */
export function stopping(): SwitchboardError {
  return new SwitchboardError('server_unavailable', 'Switchboard is stopping: try again when it is back.');
}

/** Whatever was thrown, as an error that can be shown. */
export function asSwitchboardError(thrown: unknown): SwitchboardError {
  if (thrown instanceof SwitchboardError) return thrown;
  return new SwitchboardError('internal', thrown instanceof Error ? thrown.message : String(thrown), {
    cause: thrown,
  });
}

function row(http: number, rpc: number, fault: Fault, retryable: boolean, meaning: string): ErrorKind {
  return { http, rpc, fault, retryable, meaning };
}

/** Whether the rest of a request's body may still come after such an answer, and must not be taken for the next request. */
export function leavesBody(code: ErrorCode): boolean {
  return code === 'too_large' || code === 'request_timeout';
}
