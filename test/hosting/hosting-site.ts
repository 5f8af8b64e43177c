import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, type TestContext } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import { dockerRequest, type Engine, sharedEngine } from '../helpers/docker.ts';
import { removeVolume } from '../helpers/docker-volumes.ts';
import { serverImage } from '../helpers/images.ts';
import { EventStream, openExchange } from '../helpers/raw-http.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site } from '../projects/site.ts';

/** Sandboxes start slowly on a busy machine. */
const PATIENCE_MS = 100_000;
const LOOK_MS = 50;
const NO_ENGINE = '/nonexistent/docker.sock';

interface HostingSiteOptions {
  /** Undefined: no engine is reachable. */
  engine?: Engine | undefined;
  /** More settings of `switchboard.hosting`. */
  settings?: object;
  /** More settings of `switchboard`. */
  others?: object;
  env?: Record<string, string>;
}

export interface StoredServer {
  container_type: string;
  lifecycle: string;
  provider: string | null;
  provider_workspace_id: string | null;
  status: string;
  resource_limits: Record<string, unknown>;
  mcp_config: Record<string, unknown>;
  metadata: {
    memory: { crashes: string[]; step: number; restarts: number; hostPort?: number };
    started_at: string | null;
  };
  created_at: Date;
  updated_at: Date;
}

/** The engine's description of a container. */
export interface ContainerFacts {
  Id: string;
  Config: { Image: string; Env: string[] };
  State: { Running: boolean; StartedAt: string };
  HostConfig: Record<string, unknown>;
  NetworkSettings: { Ports: Record<string, { HostIp: string; HostPort: string }[] | null> };
}

/** A running Switchboard that hosts servers. */
export class HostingSite implements AsyncDisposable {
  readonly site: Site;
  readonly engine: Engine | undefined;
  /** The label of this installation on containers and volumes. */
  readonly owner: string;

  private constructor(site: Site, engine: Engine | undefined, owner: string) {
    this.site = site;
    this.engine = engine;
    this.owner = owner;
  }

  static async start({ engine, settings, others, env }: HostingSiteOptions = {}): Promise<HostingSite> {
    const hosting = { engine: engine?.socketPath ?? NO_ENGINE, ...settings };
    const config = { mcpServers: {}, switchboard: { hosting, ...others } };
    const site = await Site.start('server', config, { env: { E2B_API_KEY: '', ...env } });
    return new HostingSite(site, engine, (await site.defaultProject()).id);
  }

  /** Registers a server, under a generated name if none is given. */
  register(input: object): Promise<HostedView> {
    const name = `server-${randomUUID().slice(0, 8)}`;
    return this.site.done<HostedView>('POST /mcp/servers', { name, ...input });
  }

  async host(input: object): Promise<HostedView> {
    const { id } = await this.register(input);
    return this.reaches(id, isReady);
  }

  image(fixture: string): Promise<string> {
    if (this.engine === undefined) throw new Error('There is no engine here that could have images.');
    return serverImage(this.engine, fixture);
  }

  /** How to run a server of test/fixtures if isolation does not matter. */
  process(fixture: string, environment: Record<string, string> = {}) {
    const { command, args } = fixtureServer(fixture);
    return { provider: 'process' as const, command, args, environment };
  }

  /** Includes its resource usage. */
  view(id: string): Promise<HostedView> {
    return this.site.done<HostedView>(`GET /mcp/servers/${id}`);
  }

  async list(): Promise<HostedView[]> {
    return (await this.site.done<{ servers: HostedView[] }>('GET /mcp/servers')).servers;
  }

  /** Settles when the server is in this state. There is no event for it, so this polls. */
  async reaches(id: string, fits: (server: HostedView) => boolean): Promise<HostedView> {
    for (const deadline = Date.now() + PATIENCE_MS; ; await delay(LOOK_MS)) {
      const server = (await this.list()).find((candidate) => candidate.id === id);
      if (server !== undefined && fits(server)) return server;
      if (Date.now() < deadline) continue;
      const log = server === undefined ? '' : await this.log(id);
      throw new Error(`It is not so: ${fits}\n${JSON.stringify(server, undefined, 2)}\n${log}`);
    }
  }

  /** A call over the bridge, successful or not. */
  call(id: string, method: string, params?: object, timeout_ms?: number) {
    return this.site.ask<{ result: Record<string, unknown> }>(`POST /mcp/servers/${id}/call`, {
      method,
      ...(params === undefined ? {} : { params }),
      ...(timeout_ms === undefined ? {} : { timeout_ms }),
    });
  }

  async tool(id: string, name: string, given: object = {}): Promise<string> {
    const { status, text, body } = await this.call(id, 'tools/call', { name, arguments: given });
    if (status !== 200) throw new Error(`${name}: HTTP ${status} ${text}`);
    return (body.result.content as { text: string }[])[0]!.text;
  }

  async log(id: string): Promise<string> {
    const { lines } = await this.site.done<{ lines: { line: string }[] }>(`GET /mcp/servers/${id}/logs`);
    return lines.map(({ line }) => line).join('\n');
  }

  /** The log lines of a server, from the first that is kept. */
  async followLog(id: string): Promise<EventStream> {
    const url = `${this.site.baseUrl}/api/v1/mcp/servers/${id}/logs?follow=1`;
    return new EventStream(await openExchange(url, { method: 'GET' }));
  }

  async row(id: string): Promise<StoredServer | undefined> {
    return (await this.site.query<StoredServer>('SELECT * FROM kb.agent_workspaces WHERE id = $1', [id]))[0];
  }

  /** Settles when the row is in this state; it is written with a delay. */
  async rowReaches(id: string, fits: (row: StoredServer) => boolean): Promise<StoredServer> {
    for (const deadline = Date.now() + PATIENCE_MS; ; await delay(LOOK_MS)) {
      const row = await this.row(id);
      if (row !== undefined && fits(row)) return row;
      if (Date.now() > deadline) throw new Error(`The row is not so: ${fits}\n${JSON.stringify(row)}`);
    }
  }

  remove(id: string, query = '') {
    return this.site.ask(`DELETE /mcp/servers/${id}${query}`);
  }

  /** SIGKILL, as in a power failure: Switchboard cannot clean up. */
  async killAndStart(): Promise<void> {
    this.site.switchboard.process.kill('SIGKILL');
    await this.site.restart();
  }

  /** The ids of all containers of this installation, or of one of its servers. */
  async containers(server?: string): Promise<string[]> {
    const ofServer = server === undefined ? [] : [`dev.switchboard.id=${server}`];
    const found = await this.docker<{ Id: string }[]>('GET', '/containers/json', {
      all: '1',
      filters: this.labelled(...ofServer),
    });
    return found.map(({ Id }) => Id);
  }

  /** Settles when this server has no container. */
  async withoutContainer(server: string): Promise<void> {
    for (const deadline = Date.now() + PATIENCE_MS; ; await delay(LOOK_MS)) {
      const left = await this.containers(server);
      if (left.length === 0) return;
      if (Date.now() > deadline) throw new Error(`There is still a container: ${left.join(', ')}`);
    }
  }

  async volumes(): Promise<string[]> {
    const query = { filters: this.labelled() };
    const { Volumes } = await this.docker<{ Volumes: { Name: string }[] | null }>('GET', '/volumes', query);
    return (Volumes ?? []).map(({ Name }) => Name);
  }

  async inspect(server: Pick<HostedView, 'provider_workspace_id'>): Promise<ContainerFacts> {
    return this.docker<ContainerFacts>('GET', `/containers/${server.provider_workspace_id}/json`);
  }

  /** Queries the engine directly. */
  docker<Answer>(method: string, path: string, query: Record<string, string> = {}): Promise<Answer> {
    const words = new URLSearchParams(query).toString();
    return dockerRequest<Answer>(this.engine!.socketPath, method, words === '' ? path : `${path}?${words}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
    if (this.engine === undefined) return;
    const left = await this.containers();
    for (const id of left) await this.docker('DELETE', `/containers/${id}`, { force: '1', v: '1' });
    for (const name of await this.volumes()) await removeVolume(this.engine, name);
    if (left.length > 0) throw new Error(`There was still a container: ${left.join(', ')}`);
  }

  private labelled(...more: string[]): string {
    return JSON.stringify({ label: [`dev.switchboard.owner=${this.owner}`, ...more] });
  }
}

export function isReady({ status }: HostedView): boolean {
  return status === 'ready';
}

/** One site for all tests of a file, on the shared engine. Without an engine, the tests are skipped. */
export function sharedHostingSite(
  settings: object = {},
): (test: Pick<TestContext, 'skip'>) => Promise<HostingSite> {
  let opened: Promise<HostingSite> | undefined;
  afterAll(async () => {
    await (await opened)?.[Symbol.asyncDispose]();
  });
  return async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    opened ??= HostingSite.start({ engine, settings });
    return opened;
  };
}

/** The same for servers that run as plain processes. */
export function sharedProcessSite(settings: object = {}): () => Promise<HostingSite> {
  let opened: Promise<HostingSite> | undefined;
  afterAll(async () => {
    await (await opened)?.[Symbol.asyncDispose]();
  });
  return () => {
    opened ??= HostingSite.start({ settings });
    return opened;
  };
}
