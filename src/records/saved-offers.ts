import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config.ts';
import type { OfferRow, OfferTable } from '../store/restart-state.ts';
import type { Server } from '../upstreams/server.ts';
import { parseSnapshot, type ServerSnapshot, serializeSnapshot } from '../upstreams/server-snapshot.ts';
import type { ListSettings } from '../upstreams/settings.ts';
import { BackgroundWriter } from './background-writer.ts';

interface SavedOffersSettings {
  table: Pick<OfferTable, 'all' | 'save' | 'touch'>;
  limits: ListSettings;
  redact(projectId: string, text: string): string;
  warned(message: string): void;
}

/** Lists that change together are written together. */
const WRITE_MS = 1_000;
const RETRY_MS = 10_000;

/** Saves what servers offer, so that the next start can list it before they run. */
export class SavedOffers {
  private readonly settings: SavedOffersSettings;
  /** The offers of the last run, until their servers are created. */
  private readonly restored = new Map<string, { fingerprint: string; snapshot: ServerSnapshot }>();
  private readonly written = new Map<string, string>();
  private readonly touched = new Set<string>();
  private readonly changed = new Set<Server>();
  private snapshots: { server: Server; snapshot: ServerSnapshot }[] = [];
  private readonly writer = new BackgroundWriter(() => this.write(), WRITE_MS, RETRY_MS);

  constructor(settings: SavedOffersSettings) {
    this.settings = settings;
  }

  async load(): Promise<void> {
    const { table, limits, warned } = this.settings;
    for (const row of await table.all()) {
      const { fingerprint, offer } = row;
      try {
        this.restored.set(keyOf(row), { fingerprint, snapshot: await parseSnapshot(offer, limits) });
        this.written.set(keyOf(row), hashOf(row));
      } catch (error) {
        warned(`The saved lists of "${row.server_name}" could not be restored: ${(error as Error).message}`);
      }
    }
  }

  /** The offer that a server with this configuration had in the last run. Each is returned once. */
  restore(project_id: string, config: ServerConfig): ServerSnapshot | undefined {
    const key = keyOf({ project_id, server_name: config.name });
    const { fingerprint, snapshot } = this.restored.get(key) ?? {};
    this.restored.delete(key);
    return fingerprint === fingerprintOf(config) ? snapshot : undefined;
  }

  /** Call when all servers are created. */
  discardRest(): void {
    this.restored.clear();
  }

  update(server: Server): void {
    this.changed.add(server);
    this.writer.schedule();
  }

  close(): Promise<void> {
    this.takeSnapshots();
    return this.writer.close();
  }

  /** A server that stops offers nothing. */
  private takeSnapshots(): void {
    for (const server of this.changed) {
      const { offer, facts, condition } = server;
      if (condition.state !== 'ready' || offer === undefined) continue;
      const { instructions, capabilities } = facts ?? {};
      const snapshot = { offer, instructions, extensions: capabilities?.extensions };
      this.snapshots.push({ server, snapshot });
    }
    this.changed.clear();
  }

  private async write(): Promise<void> {
    this.takeSnapshots();
    for (const { server, snapshot } of this.snapshots.splice(0)) {
      await this.save(server, snapshot).catch(() => {
        this.changed.add(server);
        this.writer.schedule(RETRY_MS);
      });
    }
  }

  private async save({ name, project, config }: Server, snapshot: ServerSnapshot): Promise<void> {
    const { table, redact } = this.settings;
    const offer = await serializeSnapshot(snapshot);
    // Secrets are never saved in plain text.
    if (offer === undefined || redact(project.id, offer) !== offer) return;
    const row = { project_id: project.id, server_name: name, fingerprint: fingerprintOf(config), offer };
    const [key, hash] = [keyOf(row), hashOf(row)];
    if (this.written.get(key) !== hash) await table.save([row]);
    else if (!this.touched.has(key)) await table.touch(row);
    this.written.set(key, hash);
    this.touched.add(key);
  }
}

/** Names have no line breaks. */
function keyOf({ project_id, server_name }: Pick<OfferRow, 'project_id' | 'server_name'>): string {
  return `${project_id}\n${server_name}`;
}

function hashOf({ fingerprint, offer }: OfferRow): string {
  return createHash('sha256').update(fingerprint).update(offer).digest('base64');
}

function fingerprintOf({ transport }: ServerConfig): string {
  return createHash('sha256').update(JSON.stringify(transport)).digest('base64');
}
