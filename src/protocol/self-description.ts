import { OPEN_OBJECT } from './json-bytes.ts';
import type { Span } from './json-scanner.ts';
import { withMembers, withoutMembers } from './members.ts';
import type { Claims, Message } from './message.ts';
import type { Edit } from './splice.ts';
import { modernVersion } from './versions.ts';

const PREFIX = 'io.modelcontextprotocol/';
export const SERVER_INFO_KEY = `${PREFIX}serverInfo`;
export const SUBSCRIPTION_KEY = `${PREFIX}subscriptionId`;

/** What every request of the modern era says of its sender, because nothing is known from before. */
export interface SelfDescription {
  capabilities: object;
  clientInfo: object;
  /** How loud the server may be while it works on this request; silent where it is not said. */
  logLevel: string | undefined;
}

/** The keys of `_meta` for it. */
export function describedMeta({ capabilities, clientInfo, logLevel }: SelfDescription): object {
  return {
    [`${PREFIX}protocolVersion`]: modernVersion,
    [`${PREFIX}clientInfo`]: clientInfo,
    [`${PREFIX}clientCapabilities`]: capabilities,
    ...(logLevel === undefined ? {} : { [`${PREFIX}logLevel`]: logLevel }),
  };
}

/** The same as text without braces, which is put into requests as it is. */
export function describedMembers(description: SelfDescription): Buffer {
  return Buffer.from(JSON.stringify(describedMeta(description)).slice(1, -1));
}

/** Whether a request describes its sender, as those of the modern era do. */
export function isDescribed({ claims }: Message): boolean {
  return claims?.protocolVersion !== undefined;
}

/** The edit that makes a request of the legacy era one of the modern era. */
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

/** The edits that make a request of the modern era one of the legacy era. */
export function undescribe({ bytes, claims }: Message): Edit[] {
  return withoutMembers(bytes, withoutSubscription(claims ?? {}));
}

/** The edits that put the id of a subscription into a notification, or take it out. */
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

/** What is no object cannot stay: it says nothing that anybody could read. */
function withMeta(bytes: Buffer, meta: Span, members: Buffer): Edit {
  if (bytes[meta.start] === OPEN_OBJECT) return withMembers(bytes, meta.start, members);
  return { ...meta, bytes: Buffer.concat([Buffer.from('{'), members, Buffer.from('}')]) };
}

function withoutSubscription({ subscriptionId: _, ...claims }: Claims) {
  return Object.values(claims);
}
