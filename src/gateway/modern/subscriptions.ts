import { SwitchboardError } from '../../errors.ts';
import type { Principal } from '../../identity/principal.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { resultMessage } from '../../protocol/jsonrpc.ts';
import { bytesAt, idBytes, type Message } from '../../protocol/message.ts';
import { SERVER_INFO_KEY, SUBSCRIPTION_KEY, subscribedAs } from '../../protocol/self-description.ts';
import { type Edit, splice } from '../../protocol/splice.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import type { Client } from '../../upstreams/request.ts';
import { type Authorizer, authorizeResource } from '../authorize.ts';
import type { Incoming } from '../caller.ts';
import { allWithin } from '../discovery.ts';
import type { InFlight, Responder } from '../responder.ts';
import type { Scope } from '../scope.ts';
import { type Subscriber, type Subscription, subscribeTo } from '../subscriptions.ts';

/** The filter's key for each notification of a changed list. */
const listKeys: Record<string, string> = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
};

/** Resources whose servers take longer are left out of the acknowledgement. */
const SUBSCRIBE_MS = 10_000;
const MAX_RESOURCES = 1_000;
/** The request is kept as long as the listener. */
const LARGEST_REQUEST = 256 * 1024;

/** A subscriptions/listen request: reports changes until it ends, and gets its response then. */
export class Listener implements Subscriber, InFlight {
  readonly id: InFlight['id'];
  readonly group: Group | undefined = undefined;
  readonly era = 'modern';
  readonly awaitsClient = false;
  readonly scope: Scope;
  readonly identity: Client;
  readonly responder: Responder;
  readonly capabilities: object;
  readonly subscriptions = new Map<string, Subscription>();
  private readonly incoming: Incoming;
  private readonly services: Authorizer;
  private readonly filter: ListenFilter;
  private readonly self: Identity;
  private readonly ended: (listener: Listener) => void;
  private honoured: Record<string, true | string[]> | undefined;
  isClosed = false;

  constructor(
    scope: Scope,
    incoming: Incoming,
    services: Authorizer,
    self: Identity,
    ended: (listener: Listener) => void,
  ) {
    const { caller } = incoming;
    this.scope = scope;
    // A named client subscribes at the replicas that its calls go to.
    this.identity = caller.identity === caller ? this : caller.identity;
    this.incoming = incoming;
    this.services = services;
    this.id = incoming.message.id!;
    this.responder = incoming.responder;
    this.capabilities = incoming.caller.facts.capabilities;
    this.filter = readFilter(incoming.message);
    this.self = self;
    this.ended = ended;
  }

  get principal(): Principal {
    return this.incoming.caller.principal;
  }

  /** Subscribes first, and then acknowledges the subscriptions that succeeded. */
  async begin(): Promise<void> {
    const honoured = await this.subscribe(this.filter.uris);
    if (this.isClosed) return;
    this.honoured = {
      ...Object.fromEntries(this.filter.lists.map((key) => [key, true as const])),
      ...(honoured.length === 0 ? {} : { resourceSubscriptions: honoured }),
    };
    const params = { notifications: this.honoured, _meta: { [SUBSCRIPTION_KEY]: idPlaceholder } };
    this.responder.event([this.withId({ jsonrpc: '2.0', method: ACKNOWLEDGED, params })]);
    if (Object.keys(this.honoured).length === 0) this.end();
  }

  listChanged(method: string): void {
    const key = listKeys[method];
    if (key === undefined || this.honoured?.[key] !== true) return;
    this.responder.event([
      this.withId({ jsonrpc: '2.0', method, params: { _meta: { [SUBSCRIPTION_KEY]: idPlaceholder } } }),
    ]);
  }

  resourceUpdated(message: Message, edits: Edit[]): void {
    if (this.honoured === undefined || this.isClosed) return;
    const all = [...edits, ...subscribedAs(message, idBytes(this.incoming.message))];
    this.responder.event([splice(message.bytes, all)]);
  }

  cancel(): void {
    if (this.close()) this.responder.end();
  }

  fail(): void {
    this.end();
  }

  end(): void {
    if (!this.close()) return;
    const meta = { [SUBSCRIPTION_KEY]: idPlaceholder, [SERVER_INFO_KEY]: this.self };
    const result = this.withId({ resultType: 'complete', _meta: meta });
    this.responder.respond(resultMessage(idBytes(this.incoming.message), result));
  }

  private close(): boolean {
    if (this.isClosed) return false;
    this.isClosed = true;
    this.incoming.caller.finish(this);
    this.ended(this);
    return true;
  }

  /** Resolves with the resources whose servers report updates. */
  private async subscribe(uris: readonly string[]): Promise<string[]> {
    const honoured: string[] = [];
    const subscribed = uris.map(async (uri) => {
      try {
        authorizeResource(this.scope, this.incoming, uri, this.services);
        await subscribeTo(this.scope, this, uri);
        honoured.push(uri);
      } catch {
        // The acknowledgement leaves it out.
      }
    });
    await allWithin(subscribed, SUBSCRIBE_MS);
    return uris.filter((uri) => honoured.includes(uri));
  }

  /** Inserts the request's id as the client wrote it, because a double may not hold it. */
  private withId(value: object): Buffer {
    const text = JSON.stringify(value);
    const id = bytesAt(this.incoming.message.bytes, this.incoming.message.idSpan!).toString();
    return Buffer.from(text.replace(JSON.stringify(idPlaceholder), () => id));
  }
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const idPlaceholder = '\u0000id\u0000';

interface ListenFilter {
  lists: string[];
  uris: string[];
}

function readFilter({ bytes, params }: Message): ListenFilter {
  if (bytes.length > LARGEST_REQUEST) {
    throw new SwitchboardError(
      'invalid_params',
      `A subscription request may have at most ${LARGEST_REQUEST} bytes.`,
    );
  }
  const { notifications } = (params === undefined ? {} : parseBounded(bytesAt(bytes, params).toString())) as {
    notifications?: unknown;
  };
  if (typeof notifications !== 'object' || notifications === null || Array.isArray(notifications)) {
    throw new SwitchboardError('invalid_params', 'params.notifications must be an object.');
  }
  const wanted = notifications as Record<string, unknown>;
  const { resourceSubscriptions: uris = [] } = wanted;
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) {
    throw new SwitchboardError(
      'invalid_params',
      'params.notifications.resourceSubscriptions must be a list of URIs.',
    );
  }
  if (uris.length > MAX_RESOURCES) {
    throw new SwitchboardError(
      'invalid_params',
      `A subscription may name at most ${MAX_RESOURCES} resources.`,
    );
  }
  return { lists: Object.values(listKeys).filter((key) => wanted[key] === true), uris: [...new Set(uris)] };
}
