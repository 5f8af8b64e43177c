import { OPEN_OBJECT } from './json-bytes.ts';
import type { Span } from './json-scanner.ts';
import { withMembers, withoutMembers } from './members.ts';
import type { Claims, Message } from './message.ts';
import type { Edit } from './splice.ts';
import { modernVersion } from './versions.ts';

const PREFIX = 'io.modelcontextprotocol/';
export const SERVER_INFO_KEY = `${PREFIX}serverInfo`;
export const SUBSCRIPTION_KEY = `${PREFIX}subscriptionId`;

/** How every modern request describes its sender, since no session does. */
export interface SelfDescription {
  capabilities: object;
  clientInfo: object;
  /** The log level for this request; without it, the server sends no log messages. */
  logLevel: string | undefined;
}

export function describedMeta({ capabilities, clientInfo, logLevel }: SelfDescription): object {
  return {
    [`${PREFIX}protocolVersion`]: modernVersion,
    [`${PREFIX}clientInfo`]: clientInfo,
    [`${PREFIX}clientCapabilities`]: capabilities,
    ...(logLevel === undefined ? {} : { [`${PREFIX}logLevel`]: logLevel }),
  };
}

/** The same as JSON without braces, for insertion into requests. */
export function describedMembers(description: SelfDescription): Buffer {
  return Buffer.from(JSON.stringify(describedMeta(description)).slice(1, -1));
}

export function isDescribed({ claims }: Message): boolean {
  return claims?.protocolVersion !== undefined;
}

/** An edit that turns a legacy request into a modern one. */
export function describe({ bytes, meta, params }: Message, members: Buffer): Edit {
  if (meta !== undefined) return withMeta(bytes, meta, members);
  const wrapped = Buffer.concat([Buffer.from('"_meta":{'), members, Buffer.from('}')]);
  if (params === undefined) {
    const end = bytes.lastIndexOf('}');
    const added = Buffer.concat([Buffer.from(',"params":{'), wrapped, Buffer.from('}')]);
    return { start: end, end, bytes: added };
  }
  return withMembers(bytes, params.start, wrapped);
}

/** Edits that turn a modern request into a legacy one. */
export function undescribe({ bytes, claims }: Message): Edit[] {
  return withoutMembers(bytes, withoutSubscription(claims ?? {}));
}

/** Edits that set or remove the subscription id of a notification. */
export function subscribedAs({ bytes, meta, claims, params }: Message, id: Buffer | undefined): Edit[] {
  const present = claims?.subscriptionId;
  if (present !== undefined) {
    return id === undefined ? withoutMembers(bytes, [present]) : [{ ...present.value, bytes: id }];
  }
  if (id === undefined) return [];
  const member = Buffer.concat([Buffer.from(`"${SUBSCRIPTION_KEY}":`), id]);
  if (meta !== undefined) return [withMeta(bytes, meta, member)];
  const wrapped = Buffer.concat([Buffer.from('"_meta":{'), member, Buffer.from('}')]);
  return params === undefined ? [] : [withMembers(bytes, params.start, wrapped)];
}

/** A `_meta` that is not an object is replaced. */
function withMeta(bytes: Buffer, meta: Span, members: Buffer): Edit {
  if (bytes[meta.start] === OPEN_OBJECT) return withMembers(bytes, meta.start, members);
  return { ...meta, bytes: Buffer.concat([Buffer.from('{'), members, Buffer.from('}')]) };
}

function withoutSubscription({ subscriptionId: _, ...claims }: Claims) {
  return Object.values(claims);
}
