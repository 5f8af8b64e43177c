import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Names } from '../catalog/names.ts';
import { nameClashes } from '../config/server-names.ts';
import {
  credentialsIn,
  isSecretName,
  type ServerConfig,
  type ServerDefaults,
  type ServerTransport,
  variablesOf,
} from '../config.ts';
import { asSwitchboardError } from '../errors.ts';
import { Scope, type ScopedProject, type ScopeSettings } from '../gateway/scope.ts';
import type { DisabledServer } from '../gateway/unlisted.ts';
import type { ProjectRow } from '../store/project-rows.ts';
import type { ProjectState } from '../store/projects.ts';
import type { SealedSecret } from '../store/secrets.ts';
import type { ServerRow } from '../store/servers.ts';
import type { ServerEvents } from '../upstreams/server.ts';
import type { ServerSnapshot } from '../upstreams/server-snapshot.ts';
import { type Changes, Servers } from '../upstreams/servers.ts';
import type { ReplicaSettings } from '../upstreams/settings.ts';
import { DisabledServers } from './disabled-servers.ts';
import { configOfHosted, type HostedRow, hostedRowOf } from './hosted-rows.ts';
import type { ListedServer } from './listed-server.ts';
import { configOf, unusable } from './server-rows.ts';
import { Vault } from './vault.ts';

const DEFAULT_PROJECT = 'default';
/** Shorter credentials of the configuration file occur in too many other words. */
const SHORTEST_MASKED = 8;

const unstoredDefault: ProjectRow = {
  id: '00000000-0000-0000-0000-000000000000',
  name: DEFAULT_PROJECT,
  description: '',
  record_payloads: false,
  retention_days: null,
  names: 'model-safe',
  version: 1,
  created_at: new Date(0),
  updated_at: new Date(0),
};

export const unstoredProject: ProjectState = {
  project: unstoredDefault,
  servers: [],
  hosted: [],
  products: [],
  switches: [],
  secrets: [],
};

export interface LiveProjectSettings {
  /** For the servers of all projects. */
  servers: Omit<ReplicaSettings, 'project' | 'variable' | 'given' | 'redact'>;
  events: ServerEvents;
  /** The snapshot that a server left before this start. */
  recall(projectId: string, config: ServerConfig): ServerSnapshot | undefined;
  openSecret(sealed: SealedSecret): string;
  /** Secrets of Switchboard itself, which are always masked. */
  ownSecrets: readonly string[];
  home: string;
  hostedTimeoutMs: number;
  startup: ServerConfig['startup'] | undefined;
  warned(message: string): void;
}

export class LiveProject implements ScopedProject {
  readonly id: string;
  readonly isDefault: boolean;
  readonly isVisible = undefined;
  readonly showsServer = undefined;
  readonly servers: Servers;
  readonly scope: Scope;
  readonly vault: Vault;
  readonly access: Pick<ReplicaSettings, 'variable' | 'given' | 'redact'>;
  private readonly settings: LiveProjectSettings;
  private state: ProjectState;
  private hostedRows: readonly HostedRow[];
  private switchedOff = new Set<string>();
  private scopeSettings: ScopeSettings;
  private listedServers: ListedServer[] = [];
  private readonly warnings = new Set<string>();
  private readonly disabled: DisabledServers;

  constructor(
    state: ProjectState,
    settings: LiveProjectSettings,
    scopeSettings: ScopeSettings,
    announce: ConstructorParameters<typeof Scope>[2],
  ) {
    this.id = state.project.id;
    this.isDefault = state.project.name === DEFAULT_PROJECT;
    this.state = state;
    this.hostedRows = state.hosted.map(hostedRowOf);
    this.settings = settings;
    this.vault = new Vault(settings.openSecret, settings.ownSecrets);
    this.access = {
      // Users of the API must not be able to read the environment of Switchboard.
      variable: (name, { project }) =>
        this.vault.value(name) ?? (project === undefined ? this.fromEnvironment(name) : undefined),
      given: (transport, server) => this.maskGiven(transport, server),
      redact: (text) => this.vault.redact(text),
    };
    this.servers = new Servers(
      { ...settings.servers, ...this.access, project: this },
      settings.events,
      (config) => settings.recall(this.id, config),
    );
    this.disabled = new DisabledServers((config) => settings.recall(this.id, config));
    this.scopeSettings = scopeSettings;
    this.scope = new Scope(this, this.settingsOfScope, announce);
  }

  /** Whether tools and prompts keep their names. The setting of the file applies to the project `default`. */
  get names(): Names {
    const { names } = this.state.project;
    return names === 'model-safe' && this.isDefault ? (this.scopeSettings.names ?? names) : names;
  }

  configure(settings: ScopeSettings): void {
    this.scopeSettings = settings;
    this.scope.configure(this.settingsOfScope);
  }

  get settingsOfScope(): ScopeSettings {
    return { ...this.scopeSettings, names: this.names };
  }

  get name(): string {
    return this.state.project.name;
  }

  get row(): ProjectRow {
    return this.state.project;
  }

  get hosted(): readonly HostedRow[] {
    return this.hostedRows;
  }

  /** In display order, enabled or not. */
  get listed(): readonly ListedServer[] {
    return this.listedServers;
  }

  isSwitchedOff(group: string, tool: string): boolean {
    return this.switchedOff.size > 0 && this.switchedOff.has(switchKey(group, tool));
  }

  disabledServers(): Iterable<DisabledServer> {
    return this.disabled.all(this.isDefault ? undefined : this.name);
  }

  /** Applies the servers of the file and of the database. `isVisible`: clients can see the changes. */
  apply(
    state: ProjectState,
    file: readonly ServerConfig[],
    defaults: ServerDefaults,
  ): { changes: Changes; isVisible: boolean } {
    const before = { name: this.name, names: this.names, switchedOff: this.switchedOff };
    this.state = state;
    if (this.names !== before.names) this.configure(this.scopeSettings);
    this.hostedRows = state.hosted.map(hostedRowOf);
    this.vault.replace(state.secrets);
    this.switchedOff = new Set(
      state.switches.map(({ server_name, tool_name }) => switchKey(server_name, tool_name)),
    );
    for (const { transport } of file) this.mask(credentialsIn(transport));
    this.listedServers = this.list(file, defaults);
    const enabled = this.listedServers.filter(({ isEnabled, problem }) => isEnabled && problem === undefined);
    const changes = this.servers.apply(enabled.map(({ config }) => config));
    this.disabled.update(this.listedServers, changes.stopped);
    const isSame =
      Object.values(changes).every((servers) => servers.length === 0) &&
      isDeepStrictEqual(before, { name: this.name, names: this.names, switchedOff: this.switchedOff });
    return { changes, isVisible: !isSame };
  }

  productOf({ product_id }: ServerRow): string | undefined {
    return this.state.products.find(({ id }) => id === product_id)?.name;
  }

  private list(file: readonly ServerConfig[], defaults: ServerDefaults): ListedServer[] {
    const stored = [
      ...this.state.servers.map((row) => this.listRow(row, defaults)),
      ...this.hostedRows.map((row) => this.listHosted(row, defaults)),
    ];
    const fromFile = file
      .filter((config) => !this.isTaken(config, stored))
      .map((config) => ({
        name: config.name,
        config: this.complete(config),
        row: undefined,
        isEnabled: config.enabled && !this.switchedOff.has(switchKey(config.name, null)),
      }));
    return [...fromFile, ...stored];
  }

  private listRow(row: ServerRow, defaults: ServerDefaults): ListedServer {
    const listed = { name: row.name, row, isEnabled: row.enabled };
    try {
      return { ...listed, config: this.complete(configOf(row, this.name, defaults, this.folder())) };
    } catch (error) {
      const problem = asSwitchboardError(error).message;
      this.warnOnce(`Project "${this.name}": ${problem}. It cannot be used.`);
      return { ...listed, config: unusable(row, defaults), problem };
    }
  }

  private listHosted(row: HostedRow, defaults: ServerDefaults): ListedServer {
    const config = configOfHosted(row, this.name, this.settings.hostedTimeoutMs, defaults);
    return { name: row.name, config, row: undefined, hosted: row, isEnabled: row.enabled };
  }

  /** Keeps the default working directory of servers away from the database and the keys. */
  private folder(): string {
    const folder = join(this.settings.home, 'servers', this.id);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  /** Stored servers take precedence: an edit of the file must not make them vanish. */
  private isTaken(server: ServerConfig, stored: readonly ListedServer[]): boolean {
    const { name } = server;
    const configs = stored.map(({ config }) => config);
    const clash = nameClashes([...configs, server]).find((found) =>
      [found.server, found.other].includes(name),
    );
    const namesake = configs.find((config) => config.name === name)?.name;
    if (clash === undefined && namesake === undefined) return false;
    const other = namesake ?? (clash!.server === name ? clash!.other : clash!.server);
    this.warnOnce(
      `The server "${name}" of the configuration file is ignored, because its name clashes with the server "${other}" of project "${this.name}": rename one of them.`,
    );
    return true;
  }

  private fromEnvironment(name: string): string | undefined {
    const value = process.env[name];
    if (value !== undefined && isSecretName(name)) this.mask([value]);
    return value;
  }

  /** Masks the credentials that a server gets, and the variables that they are made of. */
  private maskGiven(transport: ServerTransport, { transport: written, project }: ServerConfig): void {
    const credentials = credentialsIn(transport);
    this.mask(credentials);
    if (project !== undefined || credentials.length === 0) return;
    const parts = [...variablesOf(written)].flatMap((name) => process.env[name] ?? []);
    const isFolder = (part: string) => part.startsWith('/');
    this.mask(parts.filter((part) => !isFolder(part) && credentials.some((whole) => whole.includes(part))));
  }

  private mask(credentials: readonly string[]): void {
    this.vault.learn(credentials.filter((value) => value.length >= SHORTEST_MASKED));
  }

  private complete(config: ServerConfig): ServerConfig {
    const secrets = this.vault.versions(variablesOf(config.transport));
    const { startup = config.startup } = this.settings;
    return { ...config, startup, ...(Object.keys(secrets).length === 0 ? {} : { secrets }) };
  }

  private warnOnce(warning: string): void {
    if (this.warnings.has(warning)) return;
    this.warnings.add(warning);
    this.settings.warned(warning);
  }
}

/** Names have no line breaks. */
function switchKey(server: string, tool: string | null): string {
  return tool === null ? server : `${server}\n${tool}`;
}
