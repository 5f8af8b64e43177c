import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config.ts';
import type { OfferRow, OfferTable } from '../store/restart-state.ts';
import { parseSnapshot, type ServerSnapshot, serializeSnapshot } from '../upstreams/remembered.ts';
import type { Server } from '../upstreams/server.ts';
import type { ListSettings } from '../upstreams/settings.ts';

interface StoredOffersSettings {
  table: Pick<OfferTable, 'all' | 'save' | 'touch'>;
  limits: ListSettings;
  /** The text without the secrets of a project. */
  redact(projectId: string, text: string): string;
  warned(message: string): void;
}

/** Lists that change together are written together. */
const WRITE_MS = 1_000;
const RETRY_MS = 10_000;

/** What servers offer is written down, so that it can be listed at the next start before they run. */
export class StoredOffers {
  private readonly settings: StoredOffersSettings;
  /** What was written down before this start, until the servers are made of which it is. */
  private readonly recalled = new Map<string, { fingerprint: string; remembered: ServerSnapshot }>();
  /** What stands there now, as a hash. */
  private readonly written = new Map<string, string>();
  private readonly seen = new Set<string>();
  private readonly changed = new Set<Server>();
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(settings: StoredOffersSettings) {
    this.settings = settings;
  }

  /** Reads what was written down. That it cannot be read is no reason not to start. */
  async load(): Promise<void> {
    const { table, limits, warned } = this.settings;
    for (const known of await table.all()) {
      const { fingerprint, offer } = known;
      try {
        this.recalled.set(keyOf(known), { fingerprint, remembered: await parseSnapshot(offer, limits) });
        this.written.set(keyOf(known), hashOf(known));
      } catch (error) {
        warned(`What "${known.server_name}" offered is not known any more: ${(error as Error).message}`);
      }
    }
  }

  /** What a server of this configuration offered, once. */
  recall(project_id: string, config: ServerConfig): ServerSnapshot | undefined {
    const key = keyOf({ project_id, server_name: config.name });
    const { fingerprint, remembered } = this.recalled.get(key) ?? {};
    this.recalled.delete(key);
    return fingerprint === fingerprintOf(config) ? remembered : undefined;
  }

  /** All servers are made that there are. */
  forgetOthers(): void {
    this.recalled.clear();
  }

  /** What a server offers may be another. */
  note(server: Server): void {
    this.changed.add(server);
    this.schedule(WRITE_MS);
  }

  /** Writes what is left. */
  close(): Promise<void> {
    clearTimeout(this.timer);
    this.write();
    return this.writing;
  }

  private schedule(milliseconds: number): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.write();
    }, milliseconds).unref();
  }

  private write(): void {
    // Taken now: they may be stopped at any moment, and offer nothing then.
    const known = [...this.changed].flatMap((server) => {
      const { offer, facts, condition } = server;
      if (condition.state !== 'ready' || offer === undefined) return [];
      const { instructions, capabilities } = facts ?? {};
      return [{ server, remembered: { offer, instructions, extensions: capabilities?.extensions } }];
    });
    this.changed.clear();
    this.writing = this.writing.then(async () => {
      for (const { server, remembered } of known) {
        await this.keep(server, remembered).catch(() => {
          this.changed.add(server);
          this.schedule(RETRY_MS);
        });
      }
    });
  }

  private async keep({ name, project, config }: Server, remembered: ServerSnapshot): Promise<void> {
    const { table, redact } = this.settings;
    const offer = await serializeSnapshot(remembered);
    // Nothing that is secret is written down as it is.
    if (offer === undefined || redact(project.id, offer) !== offer) return;
    const known = { project_id: project.id, server_name: name, fingerprint: fingerprintOf(config), offer };
    const [key, hash] = [keyOf(known), hashOf(known)];
    if (this.written.get(key) !== hash) await table.save([known]);
    else if (!this.seen.has(key)) await table.touch(known);
    this.written.set(key, hash);
    this.seen.add(key);
  }
}

/** No name has a line break in it. */
function keyOf({ project_id, server_name }: Pick<OfferRow, 'project_id' | 'server_name'>): string {
  return `${project_id}\n${server_name}`;
}

function hashOf({ fingerprint, offer }: OfferRow): string {
  return createHash('sha256').update(fingerprint).update(offer).digest('base64');
}

function fingerprintOf({ transport }: ServerConfig): string {
  return createHash('sha256').update(JSON.stringify(transport)).digest('base64');
}
