import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Sender } from './principal.ts';

/** Decides who sends each request. */
export interface Access {
  /** Throws or rejects with `unauthorized` if the sender may not connect. */
  identify(request: IncomingMessage): Sender | Promise<Sender>;
  /** Whether an identified request vouches for its connection. If not, only own processes do. */
  readonly vouches: boolean;
  /** Whether the system can distinguish the users of this machine. */
  readonly tellsUsers: boolean;
  /** Whether the process at the other end is one of our own user. */
  ask(socket: Socket): boolean | Promise<boolean>;
}

/** The token that a request carries as `Authorization: Bearer`; undefined if there is none. */
export function bearerOf({ headers: { authorization } }: IncomingMessage): string | undefined {
  if (authorization === undefined || authorization.length < 7) return undefined;
  return authorization.slice(0, 7).toLowerCase() === 'bearer ' ? authorization.slice(7) : undefined;
}

/** Compares in constant time; the lengths are not secret. */
export function isSameText(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}
