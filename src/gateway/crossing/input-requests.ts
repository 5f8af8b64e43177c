import type { SwitchboardError } from '../../errors.ts';
import { bytesAt, idBytes, type Message } from '../../protocol/envelope.ts';
import { bytesOf } from '../../protocol/jsonrpc.ts';
import { parseLossless } from '../../protocol/lossless.ts';
import { isObject } from '../../protocol/objects.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { tooManyQuestions } from '../legacy/caller.ts';
import { decline } from '../legacy/server-requests.ts';

interface Question {
  upstream: Upstream;
  serverId: Buffer;
  method: string;
  params: unknown;
}

/** They go into one answer. */
const MAX_OPEN = 100;
/** One may be as large as any message. */
const MAX_OPEN_BYTES = 64 * 1024 * 1024;

/** What servers of the legacy era have asked during one call, and a client of the modern era is asked for by its answer. */
export class Questions {
  private readonly open = new Map<string, Question>();
  private openBytes = 0;
  private asked = 0;
  private settledAt = 0;

  get isEmpty(): boolean {
    return this.open.size === 0;
  }

  /** Until when a server waited for the client; `now` where one still does. */
  waitedUntil(now: number): number {
    return this.isEmpty ? this.settledAt : now;
  }

  /** Fails where it would be too many. */
  add(message: Message, upstream: Upstream): void {
    const { bytes, method, params } = message;
    const isFull = this.open.size >= MAX_OPEN || this.openBytes + bytes.length > MAX_OPEN_BYTES;
    if (isFull) throw tooManyQuestions();
    this.openBytes += bytes.length;
    const asked = params && withoutProgress(parseLossless(bytesAt(bytes, params).toString()));
    const serverId = Buffer.from(idBytes(message));
    this.open.set(`question-${++this.asked}`, { upstream, serverId, method, params: asked });
  }

  /** As they stand in a result. */
  inputRequests(): object {
    const entries = [...this.open].map(([key, { method, params }]) => [
      key,
      params === undefined ? { method } : { method, params },
    ]);
    return Object.fromEntries(entries);
  }

  /** Passes on what the client says; what it says nothing of stays open. */
  answer({ bytes, inputResponses }: Message): void {
    const given = inputResponses && parseLossless(bytesAt(bytes, inputResponses).toString());
    if (!isObject(given)) return;
    for (const [key, { upstream, serverId }] of this.open) {
      const answer = Object.hasOwn(given, key) ? given[key] : undefined;
      if (!isObject(answer)) continue;
      this.open.delete(key);
      this.settledAt = performance.now();
      upstream.answer(serverId, bytesOf(answer));
    }
    if (this.isEmpty) this.openBytes = 0;
  }

  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const [key, question] of this.open) {
      if (question.upstream !== upstream || !question.serverId.equals(serverId)) continue;
      this.open.delete(key);
      this.settledAt = performance.now();
    }
  }

  declineAll(why: SwitchboardError): void {
    for (const { upstream, serverId } of this.open.values()) decline(upstream, serverId, why);
    this.open.clear();
    this.openBytes = 0;
  }
}

/** Nobody can report progress on it. */
function withoutProgress(params: unknown): unknown {
  if (!isObject(params) || !isObject(params._meta)) return params;
  const { _meta, ...rest } = params;
  const { progressToken, ...meta } = params._meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}
