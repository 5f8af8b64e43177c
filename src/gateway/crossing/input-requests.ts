import type { SwitchboardError } from '../../errors.ts';
import { bytesOf } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { bytesAt, idBytes, type Message } from '../../protocol/message.ts';
import { isObject } from '../../protocol/objects.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { decline, tooManyPending } from '../legacy/server-requests.ts';

interface InputRequest {
  upstream: Upstream;
  serverId: Buffer;
  method: string;
  params: unknown;
}

/** All of them go into one response. */
const MAX_PENDING = 100;
/** A single one may be as large as any message. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024;

/** The requests of legacy servers during one call of a modern client, which gets them as `inputRequests` of its response. */
export class InputRequests {
  private readonly pending = new Map<string, InputRequest>();
  private pendingBytes = 0;
  private count = 0;
  private settledAt = 0;

  get isEmpty(): boolean {
    return this.pending.size === 0;
  }

  /** Until when a server waited for the client: `now` if one still does. */
  waitedUntil(now: number): number {
    return this.isEmpty ? this.settledAt : now;
  }

  /** Throws if there are too many. */
  add(message: Message, upstream: Upstream): void {
    const { bytes, method, params } = message;
    const isFull = this.pending.size >= MAX_PENDING || this.pendingBytes + bytes.length > MAX_PENDING_BYTES;
    if (isFull) throw tooManyPending();
    this.pendingBytes += bytes.length;
    const parsed = params && withoutProgress(parseLossless(bytesAt(bytes, params).toString()));
    const serverId = Buffer.from(idBytes(message));
    this.pending.set(`question-${++this.count}`, { upstream, serverId, method, params: parsed });
  }

  /** As they appear in a result. */
  inputRequests(): object {
    const entries = [...this.pending].map(([key, { method, params }]) => [
      key,
      params === undefined ? { method } : { method, params },
    ]);
    return Object.fromEntries(entries);
  }

  /** Passes the client's input to the servers; requests without input stay pending. */
  respond({ bytes, inputResponses }: Message): void {
    const given = inputResponses && parseLossless(bytesAt(bytes, inputResponses).toString());
    if (!isObject(given)) return;
    for (const [key, { upstream, serverId }] of this.pending) {
      const response = Object.hasOwn(given, key) ? given[key] : undefined;
      if (!isObject(response)) continue;
      this.pending.delete(key);
      this.settledAt = performance.now();
      upstream.answer(serverId, bytesOf(response));
    }
    if (this.isEmpty) this.pendingBytes = 0;
  }

  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const [key, request] of this.pending) {
      if (request.upstream !== upstream || !request.serverId.equals(serverId)) continue;
      this.pending.delete(key);
      this.settledAt = performance.now();
    }
  }

  declineAll(error: SwitchboardError): void {
    for (const { upstream, serverId } of this.pending.values()) decline(upstream, serverId, error);
    this.pending.clear();
    this.pendingBytes = 0;
  }
}

/** A modern client cannot report progress on a server's request. */
function withoutProgress(params: unknown): unknown {
  if (!isObject(params) || !isObject(params._meta)) return params;
  const { _meta, ...rest } = params;
  const { progressToken, ...meta } = params._meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}
