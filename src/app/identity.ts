import { randomBytes } from 'node:crypto';
import type { CallServices } from '../gateway/client-call.ts';
import { TaskIds } from '../gateway/modern/tasks.ts';
import type { Access } from '../identity/access.ts';
import { AccessControl, type Denial } from '../identity/access-control.ts';
import { TrustedProxies } from '../identity/client-address.ts';
import { KeyAccess, type RefusedCredential } from '../identity/key-access.ts';
import { Limiter } from '../identity/limiter.ts';
import { LocalAccess } from '../identity/local-access.ts';
import { Policy } from '../identity/policy.ts';
import { PolicyRefresher } from '../identity/policy-refresher.ts';
import type { Principal } from '../identity/principal.ts';
import { Denials } from '../records/denials.ts';
import type { Actor } from '../store/audit/append.ts';
import type { Store } from '../store/store.ts';

interface IdentitySettings {
  auth: boolean;
  localAccess: 'user' | 'everyone';
  trustedProxies: readonly string[];
}

export interface IdentityEvents {
  /** Revoked, removed or expired. */
  ended(principal: Principal): void;
  changed(principals: ReadonlySet<Principal>): void;
  keyEnded(principals: ReadonlySet<Principal>): void;
  /** After each change of what anybody may do. */
  applied(policy: Policy): void;
}

const USES_MS = 30_000;

/** Who may connect, and what they may do: the stored facts, and what follows from them. */
export class Identity {
  readonly policy: Policy;
  readonly access: Access;
  readonly control: AccessControl;
  readonly limiter = new Limiter();
  private readonly taskIds: TaskIds;
  readonly refresher: PolicyRefresher | undefined;
  readonly denials: Denials | undefined;
  private readonly store: Store | undefined;
  private readonly unsubscribe: () => void;
  private readonly uses: NodeJS.Timeout;

  constructor(
    store: Store | undefined,
    token: string | undefined,
    { auth, localAccess, trustedProxies }: IdentitySettings,
    events: IdentityEvents,
  ) {
    this.store = store;
    this.policy = new Policy({
      ended: events.ended,
      changed: events.changed,
      keyEnded: events.keyEnded,
      applied: () => {
        this.limiter.apply(this.policy.limits);
        events.applied(this.policy);
      },
    });
    this.denials = store && new Denials((denials) => store.audit.append(denials));
    // Without a database nobody else can issue ids, and the local user's are not signed.
    this.taskIds = new TaskIds(store !== undefined && auth ? store.deriveKey('tasks') : randomBytes(32));
    this.control = new AccessControl((denial) => this.denied(denial));
    const proxies = new TrustedProxies(trustedProxies);
    const refused = (refusal: RefusedCredential) => this.refused(refusal);
    this.access = auth
      ? new KeyAccess({ policy: this.policy, token, proxies, refused })
      : new LocalAccess(token, localAccess === 'everyone');
    this.refresher = store && new PolicyRefresher(() => store.access.state(), this.policy);
    this.unsubscribe = store?.subscribeAccess(() => this.refresher!.follow()) ?? (() => {});
    this.uses = setInterval(() => void this.writeUses(), USES_MS).unref();
  }

  /** What decides about each call. */
  get guards(): Pick<CallServices, 'access' | 'limiter' | 'taskIds'> {
    return { access: this.control, limiter: this.limiter, taskIds: this.taskIds };
  }

  /** Call before clients connect. */
  async start(): Promise<void> {
    await this.refresher?.refresh();
  }

  async close(): Promise<void> {
    clearInterval(this.uses);
    this.unsubscribe();
    this.refresher?.close();
    this.policy.close();
    await Promise.all([this.denials?.close(), this.writeUses()]);
  }

  private denied({ sender: { principal, address }, action, project, subject, rule }: Denial): void {
    const { kind, id, name } = principal;
    this.denials?.add({
      ...{ actor: { kind, id, name, address }, outcome: 'denied', action, subject, ruleId: rule?.id },
      project: project && { id: project.id, name: project.name },
    });
  }

  private refused({ address, reason, key }: RefusedCredential): void {
    const known = key === undefined ? undefined : this.policy.ownerOf(key);
    const actor: Actor = { kind: 'key', id: known?.id ?? '', name: known?.name ?? 'unknown', address };
    // Anyone can invent ids: each would be an entry of its own.
    const subject = known === undefined ? `credential: ${reason}` : `key ${key}: ${reason}`;
    this.denials?.add({
      ...{
        actor,
        outcome: 'refused',
        action: 'authenticate',
        project: undefined,
        subject,
        ruleId: undefined,
      },
    });
  }

  /** Lost if the database is away: it is only shown. */
  private async writeUses(): Promise<void> {
    const uses = this.policy.takeUses().map(({ id, at }) => ({ id, at: new Date(at) }));
    if (uses.length > 0) await this.store?.access.touchKeys(uses).catch(() => {});
  }
}
