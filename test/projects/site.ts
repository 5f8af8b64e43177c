import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { ProjectView, ServerView } from '../../src/api/views.ts';
import { freshDatabase, type TestDatabase } from '../helpers/database.ts';
import { ownLogin } from '../helpers/postgres.ts';
import { EventStream, exchange, openExchange, RawSession } from '../helpers/raw-http.ts';
import { temporaryHome } from '../helpers/store.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { TestClient } from './test-client.ts';

type DatabaseKind = 'embedded' | 'server';

/** The database of every suite: PostgreSQL at DATABASE_URL, or in the long runs the embedded one. */
export const databases: DatabaseKind[] = process.env.TEST_DATABASE === 'embedded' ? ['embedded'] : ['server'];

interface ApiError {
  code: string;
  message: string;
  details: Record<string, unknown> & { problems?: { path: string; message: string }[] };
}

interface ApiAnswer<Body> {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  body: Body & { error?: ApiError };
}

export interface SiteConfig {
  mcpServers?: object;
  switchboard?: object;
  /** Changes the file without changing the configuration. */
  edit?: unknown;
}

interface SiteOptions {
  env?: Record<string, string>;
  /** The URL of a database to use instead of a new one. */
  url?: string;
}

const { CI } = process.env;

/** A running Switchboard with its database, its API, and a witness of its servers' input. */
export class Site implements AsyncDisposable {
  readonly witness: Witness;
  readonly home: string;
  switchboard: RunningSwitchboard;
  private readonly database: { variable: 'embedded' | { url: string }; fresh: TestDatabase | undefined };
  private readonly options: SiteOptions;
  private config: SiteConfig;
  private readonly closeHome: () => Promise<void>;

  private constructor(parts: {
    witness: Witness;
    home: Awaited<ReturnType<typeof temporaryHome>>;
    switchboard: RunningSwitchboard;
    database: Site['database'];
    options: SiteOptions;
    config: SiteConfig;
  }) {
    this.witness = parts.witness;
    this.home = parts.home.path;
    this.closeHome = async () => parts.home[Symbol.asyncDispose]();
    this.switchboard = parts.switchboard;
    this.database = parts.database;
    this.options = parts.options;
    this.config = parts.config;
  }

  static async start(
    kind: DatabaseKind,
    config: SiteConfig | ((witness: Witness) => SiteConfig) = { mcpServers: {} },
    options: SiteOptions = {},
  ): Promise<Site> {
    const witness = await Witness.open();
    const home = await temporaryHome();
    const database = await databaseFor(kind, options.url);
    const known = typeof config === 'function' ? config(witness) : config;
    const switchboard = await startSwitchboard(known.mcpServers, known.switchboard, {
      database: database.variable,
      home: home.path,
      ...(options.env === undefined ? {} : { env: options.env }),
    });
    return new Site({ witness, home, switchboard, database, options, config: known });
  }

  get baseUrl(): string {
    return this.switchboard.baseUrl;
  }

  /** Sends an API request, such as `GET /projects`. */
  async ask<Body = Record<string, unknown>>(
    what: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer<Body>> {
    const [method = '', path = ''] = what.split(' ');
    const type = body === undefined && method !== 'POST' ? {} : { 'content-type': 'application/json' };
    const answer = await exchange(`${this.baseUrl}/api/v1${path}`, {
      method,
      headers: { ...type, ...headers },
      body,
    });
    return { ...answer, body: (answer.json ?? {}) as unknown as ApiAnswer<Body>['body'] };
  }

  /** Sends an API request that must succeed. */
  async done<Body = Record<string, unknown>>(what: string, body?: unknown): Promise<Body> {
    const answer = await this.ask<Body>(what, body);
    if (answer.status >= 300) throw new Error(`${what}: HTTP ${answer.status} ${answer.text}`);
    return answer.body;
  }

  /** A project for one test, deleted after it. */
  async project(input: object = {}): Promise<TestProject> {
    const project = await this.createProject(`project-${randomUUID().slice(0, 8)}`, input);
    onTestFinished(async () => {
      await this.ask(`DELETE /projects/${project.id}`);
    });
    return project;
  }

  async createProject(name: string, input: object = {}): Promise<TestProject> {
    const { id } = await this.done<ProjectView>('POST /projects', { name, ...input });
    return new TestProject(this, id, name);
  }

  async defaultProject(): Promise<TestProject> {
    const { id, name } = await this.done<ProjectView>('GET /projects/default');
    return new TestProject(this, id, name);
  }

  /** Runs a statement on the database directly. */
  async query<Row extends pg.QueryResultRow>(statement: string, values: unknown[] = []): Promise<Row[]> {
    await using client = await this.connect();
    return (await client.query<Row>(statement, values)).rows;
  }

  async connect(): Promise<pg.Client & AsyncDisposable> {
    const { variable } = this.database;
    const client = new pg.Client(
      variable === 'embedded'
        ? { host: join(this.home, 'postgres'), database: 'postgres', ...ownLogin(this.home) }
        : { connectionString: this.database.fresh?.url ?? variable.url },
    );
    // Stopping the database ends the connection with an error.
    client.on('error', () => {});
    await client.connect();
    return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
  }

  async configure(config: SiteConfig): Promise<void> {
    this.config = config;
    const { mcpServers = {}, switchboard, ...more } = config;
    await this.switchboard.configure(mcpServers, switchboard, more);
  }

  /** Replaces the configuration, and waits until it is applied. */
  async configured(config: SiteConfig): Promise<void> {
    const past = new Set(this.switchboard.events);
    await this.configure(config);
    await this.switchboard.event((candidate) => candidate.event === 'configuration' && !past.has(candidate));
  }

  /** The first matching warning, past or future. */
  async warning(fits: RegExp): Promise<string> {
    const isIt = ({ event, message }: Record<string, unknown>) =>
      event === 'warning' && fits.test(String(message));
    return String((await this.switchboard.event(isIt)).message);
  }

  async restart(meanwhile: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.switchboard.stop();
    await meanwhile();
    const { env } = this.options;
    this.switchboard = await startSwitchboard(this.config.mcpServers, this.config.switchboard, {
      database: this.database.variable,
      home: this.home,
      ...(env === undefined ? {} : { env }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.switchboard.stop();
    await this.witness[Symbol.asyncDispose]();
    await this.database.fresh?.[Symbol.asyncDispose]();
    await this.closeHome();
  }
}

async function databaseFor(kind: DatabaseKind, url: string | undefined): Promise<Site['database']> {
  if (kind === 'embedded') return { variable: 'embedded', fresh: undefined };
  if (url !== undefined) return { variable: { url }, fresh: undefined };
  if (CI !== undefined && CI !== '' && CI !== 'false' && !inject('postgres').isDebian) {
    throw new Error("CI tests with Debian's postgresql, which is not here");
  }
  const fresh = await freshDatabase();
  return { variable: { url: fresh.url }, fresh };
}

export class TestProject {
  readonly site: Site;
  readonly id: string;
  readonly name: string;

  constructor(site: Site, id: string, name: string) {
    this.site = site;
    this.id = id;
    this.name = name;
  }

  get url(): string {
    return `${this.site.baseUrl}/mcp/${this.name}`;
  }

  /** Sends a request such as `GET /servers` within this project. */
  ask<Body = Record<string, unknown>>(what: string, body?: unknown, headers?: Record<string, string>) {
    return this.site.ask<Body>(this.within(what), body, headers);
  }

  done<Body = Record<string, unknown>>(what: string, body?: unknown): Promise<Body> {
    return this.site.done<Body>(this.within(what), body);
  }

  /** Adds a server of test/fixtures, which reports to the witness as `project/server`, or as `who`. */
  add(
    name: string,
    { fixture = 'toolbox', who = this.who(name), env = {}, ...more }: NewFixture = {},
  ): Promise<ServerView> {
    const config = fixtureServer(fixture, { ...this.site.witness.env(who), ...env });
    return this.done<ServerView>('POST /servers', { name, transport: 'stdio', config, ...more });
  }

  change(name: string, changes: object): Promise<ServerView> {
    return this.done<ServerView>(`PATCH /servers/${name}`, changes);
  }

  server(name: string): Promise<ServerView> {
    return this.done<ServerView>(`GET /servers/${name}`);
  }

  async logOf(name: string): Promise<string> {
    return (await this.done<{ lines: string[] }>(`GET /servers/${name}/logs`)).lines.join('\n');
  }

  /** The name of a server at the witness. */
  who(server: string): string {
    return `${this.name}/${server}`;
  }

  session(): Promise<RawSession> {
    return RawSession.open(this.url);
  }

  client(): Promise<TestClient> {
    return TestClient.open(this.url);
  }

  /** The current states of its servers, then their changes. */
  async events(): Promise<EventStream> {
    const url = `${this.site.baseUrl}/api/v1/projects/${this.name}/events`;
    const stream = new EventStream(await openExchange(url, { method: 'GET' }));
    await stream.events.first(({ event }) => event === 'servers');
    return stream;
  }

  /** Settles when this server is in such a state. */
  async reaches(name: string, fits: (server: ServerView) => boolean): Promise<ServerView> {
    const stream = await this.events();
    const serversIn = ({ event, data = '{}' }: { event?: string; data?: string }) => {
      const view = JSON.parse(data) as { servers: ServerView[]; server: ServerView };
      return event === 'servers' ? view.servers : event === 'server' ? [view.server] : [];
    };
    const isShown = (server: ServerView) => server.name === name && fits(server);
    const event = await stream.events.first((candidate) => serversIn(candidate).some(isShown));
    await stream.cut();
    return serversIn(event).find(isShown)!;
  }

  private within(what: string): string {
    return what.replace(' ', ` /projects/${this.name}`);
  }
}

interface NewFixture {
  fixture?: string;
  who?: string;
  env?: Record<string, string>;
  [setting: string]: unknown;
}
