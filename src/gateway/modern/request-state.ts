import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { SwitchboardError } from '../../errors.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { bytesAt, type Message } from '../../protocol/message.ts';

/** The content of the state that a modern client sends back with its input. */
export type IssuedState =
  | { kind: 'held'; call: string }
  /** The replica that needs the input, and its own state if it gave one. */
  | { kind: 'replica'; server: string; number: number; state: string | undefined };

interface Sealed {
  content: IssuedState;
  binding: string;
  expires: number;
}

/** The prefix of our states; those of servers pass unchanged. */
export const STATE_MARK = 'sb1.';

/** Issues signed states, each bound to one request of one client, and with an expiry. */
export class RequestStates {
  private readonly key = randomBytes(32);
  private readonly lifeMs: number;

  constructor(lifeMs: number) {
    this.lifeMs = lifeMs;
  }

  issue(content: IssuedState, binding: string): string {
    const sealed: Sealed = { content, binding, expires: Date.now() + this.lifeMs };
    const text = Buffer.from(JSON.stringify(sealed)).toString('base64url');
    return `${STATE_MARK}${text}.${this.signature(text)}`;
  }

  /** Undefined if the state is not ours. */
  read(state: string, binding: string): IssuedState | undefined {
    if (!state.startsWith(STATE_MARK)) return undefined;
    const [text = '', signature = ''] = state.slice(STATE_MARK.length).split('.');
    if (!isSame(signature, this.signature(text)) || state !== `${STATE_MARK}${text}.${signature}`) {
      throw wrongState('was not issued by this Switchboard, or was changed');
    }
    const sealed = JSON.parse(Buffer.from(text, 'base64url').toString()) as Sealed;
    if (sealed.binding !== binding) throw wrongState('belongs to another request, or to another client');
    if (sealed.expires <= Date.now()) throw wrongState('has expired');
    return sealed.content;
  }

  private signature(text: string): string {
    return createHmac('sha256', this.key).update(text).digest('base64url');
  }
}

export function wrongState(how: string): SwitchboardError {
  return new SwitchboardError(
    'invalid_params',
    `params.requestState ${how}: send the request again without it.`,
  );
}

/** A state is bound to the client, the project and the request, without the members that a returning client adds. */
export function bindingOf(
  client: string,
  project: string | undefined,
  { bytes, method, params }: Message,
): string {
  const { _meta, inputResponses, requestState, ...rest } =
    params === undefined ? {} : (parseLossless(bytesAt(bytes, params).toString()) as Record<string, unknown>);
  const text = JSON.stringify([client, project ?? null, method, sorted(rest)]);
  return createHash('sha256').update(text).digest('base64url');
}

/** A client may write the keys of an object in another order when it returns. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  // A number that is kept as raw text.
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** Compares signatures in constant time. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
