import { SwitchboardError } from '../errors.ts';
import { itemOf } from '../gateway/items.ts';
import type { Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { JsonScanner, JsonSyntaxError, type Span } from '../protocol/json-scanner.ts';
import { readMessage } from '../protocol/message-reader.ts';
import type { Group } from '../upstreams/group.ts';
import type { RpcResponse } from '../upstreams/group-request.ts';
import { withoutReason } from '../upstreams/server-errors.ts';
import { type HostedCall, hostedCall } from './hosted-input.ts';
import type { FoundHosted } from './hosted-lookup.ts';
import { parseObject } from './http/body.ts';
import { check, invalidInput } from './http/check.ts';
import type { Asking } from './http/route.ts';
import type { Services } from './services.ts';
import { Sight } from './sight.ts';

/** The requests about one item, which rules decide about. */
const kinds = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' } as const;
const unknownCodes = {
  tools: 'unknown_tool',
  prompts: 'unknown_prompt',
  resources: 'unknown_resource',
} as const;

type Kind = (typeof kinds)[keyof typeof kinds];

/** Keeps the text of `params`, because JSON.parse would round large numbers. */
export function readCall(text: string): HostedCall {
  const { method, params, timeout_ms } = check(hostedCall, parseObject(text));
  return {
    method,
    paramsText: params === undefined ? undefined : textOf('params', text),
    timeoutMs: timeout_ms,
  };
}

/** The source text of a top-level value. As in JSON.parse, the last duplicate key counts. */
function textOf(wanted: string, text: string): string {
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner(bytes);
  let found: Span | undefined;
  try {
    scanner.object((keyStart, keyEnd) => {
      const key = JSON.parse(bytes.toString('utf8', keyStart - 1, keyEnd + 1)) as string;
      const value = scanner.span();
      if (key === wanted) found = value;
    });
  } catch (error) {
    // The text is valid JSON, so it is nested too deeply.
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw invalidInput([{ path: [wanted], message: 'is nested too deep' }]);
  }
  return bytes.toString('utf8', found!.start, found!.end);
}

/** Sends the request if the sender may use what it is about. */
export async function callHosted(
  { services, sender }: Pick<Asking, 'services' | 'sender'>,
  { hosting, registered: { project, row }, id }: FoundHosted,
  call: HostedCall,
  signal: AbortSignal,
): Promise<RpcResponse> {
  rejectReserved(call.method);
  const { control, limiter } = services.identity;
  const server = project.servers.get(row.name);
  const group = server && project.servers.group(server.group);
  const kind = Object.hasOwn(kinds, call.method) ? kinds[call.method as keyof typeof kinds] : undefined;
  const own = kind && targetOf(call, kind);
  if (kind === undefined || own === undefined)
    control.authorize(sender, 'operate', project, `${call.method} of ${row.name}`);
  // Without a group, the server is stopped, and the call fails.
  else if (group !== undefined) authorizeItem(services, sender, project, group, kind, own);
  const ticket = group && limiter.beginCall(sender.principal, group, own ?? call.method);
  try {
    return await hosting.calls.call(id, { ...call, principal: sender.principal }, signal);
  } catch (error) {
    throw sender.principal.permissions.may('operate', project.id) ? error : withoutReason(error, row.name);
  } finally {
    ticket?.release();
  }
}

function authorizeItem(
  { identity, projects }: Services,
  sender: Sender,
  project: LiveProject,
  group: Group,
  kind: Kind,
  own: string,
): void {
  const unknown = () => new SwitchboardError(unknownCodes[kind], `Unknown ${kind.slice(0, -1)}: ${own}`);
  identity.control.authorizeItem(sender, project, itemOf(group, kind, own), unknown);
  const { scope, isFull } = new Sight(projects, project, sender.principal);
  // Operators may also call what is switched off. To others, only what they see exists.
  if (isFull || kind === 'resources') return;
  const routes = scope.catalog.names[kind].values();
  if (!routes.some((route) => route.group === group.name && route.own === own)) throw unknown();
}

/** The name or URI, read as it will be sent. Undefined if it is missing, which the server reports. */
function targetOf({ method, paramsText = '{}' }: HostedCall, kind: Kind): string | undefined {
  const text = `{"jsonrpc":"2.0","id":0,"method":${JSON.stringify(method)},"params":${paramsText}}`;
  const { name, uri } = readMessage(Buffer.from(text));
  return (kind === 'resources' ? uri : name)?.value;
}

/** Switchboard performs the handshake, and a notification has no response. */
function rejectReserved(method: string): void {
  if (method !== 'initialize' && !method.startsWith('notifications/')) return;
  const why =
    method === 'initialize' ? 'Switchboard has done the handshake already' : 'notifications get no response';
  throw new SwitchboardError('invalid_input', `"${method}" cannot be called: ${why}.`, {
    data: { problems: [{ path: 'method', message: why }] },
  });
}
