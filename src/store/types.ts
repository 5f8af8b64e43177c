import type { Selectable } from 'kysely';
import type { DB } from './schema.ts';

export interface StoreOptions {
  /** postgres://…; undefined: a PostgreSQL of our own in `home`. */
  url: string | undefined;
  home: string;
  /** The keys of secrets (SWITCHBOARD_SECRET_KEY); undefined: the key file in `home`. */
  secretKey: string | undefined;
  /** Finds credentials in what is written of servers; undefined: they stay where they are. */
  moveCredentials?: MoveCredentials;
  /** Ends an opening that is under way. */
  signal?: AbortSignal;
  /** Ends a PostgreSQL of our own at once. For when there is no time to stop. */
  killSignal?: AbortSignal;
  events: StoreEvents;
}

/**
 * Gives a server's configuration with references in place of credentials. `keep` makes a secret of each, and gives its
 * name: the wanted one, unless that has another value. Of a default it keeps only what no secret stands for yet. What it
 * gives no name stays as it is.
 */
export type MoveCredentials = <Config extends object>(
  server: string,
  config: Config,
  keep: (wanted: string, value: string, isDefault: boolean) => string | undefined,
) => Config;

interface StoreEvents {
  progress(message: string): void;
  warned(message: string): void;
  /** The database went away, and why, or is back. */
  connectionChanged(isConnected: boolean, reason: string | undefined): void;
}

export type ProjectRow = Selectable<DB['projects']>;
export type ServerRow = Selectable<DB['project_mcp_servers']>;
export type ProductRow = Selectable<DB['products']>;
export type CallRow = Selectable<DB['agent_run_tool_calls']>;
/** A secret as it is kept. `version` is another one after each change of the value, not after one of the key. */
export type SealedSecret = Selectable<DB['secrets']>;
/** What a server offered when it was last seen. `fingerprint` is that of what it was run by. */
export type KnownOffer = Omit<Selectable<DB['server_offers']>, 'seen_at'>;
/** Names that clients of a project were shown; without one, those of all together. */
export type FormerNamesRow = Omit<Selectable<DB['former_names']>, 'changed_at'>;
/** A session of a client, known by a hash of its id. */
export type SessionRow = Omit<Selectable<DB['sessions']>, 'seen_at'>;
/** Something that was switched off: a tool, or the whole server where `tool_name` is null. */
type Switch = Pick<Selectable<DB['switches']>, 'server_name' | 'tool_name'>;

type Workspace = Selectable<DB['agent_workspaces']>;
/** A hosted server. `version` and `updated_at` are of what users set, not of how it fares. */
export type WorkspaceRow = Omit<Workspace, 'resource_limits' | 'mcp_config'> & {
  resource_limits: WorkspaceLimits;
  mcp_config: WorkspaceConfig;
};

/** As users write them: `0.5` cores, `512M`. */
interface WorkspaceLimits {
  cpu: string;
  memory: string;
  disk: string;
  pids: number;
}

/** `${NAME}` references are still in it. */
interface WorkspaceConfig {
  image: string | null;
  command: string | null;
  args: string[];
  stdio_bridge: boolean;
  restart_policy: 'always' | 'on-failure' | 'never';
  environment: Record<string, string>;
  port: number | null;
  /** The port of this machine that it is published at; null: any. */
  host_port: number | null;
  path: string;
  network: boolean;
  volumes: string[];
  writable_root: boolean;
  /** What was asked for. */
  provider: WorkspaceRow['provider'];
}

/** Everything of a project that the program runs by, as it was at one moment. */
export interface ProjectState {
  project: ProjectRow;
  /** By the time they were made, then by name. */
  servers: ServerRow[];
  /** In the same order. Their names are no others'. */
  hosted: WorkspaceRow[];
  products: Pick<ProductRow, 'id' | 'name' | 'version'>[];
  switches: Switch[];
  secrets: SealedSecret[];
}

export type NewProject = Pick<ProjectRow, 'name'> &
  Partial<Pick<ProjectRow, 'description' | 'record_payloads' | 'retention_days' | 'names'>>;

export type NewServer = Pick<
  ServerRow,
  'name' | 'description' | 'transport' | 'config' | 'settings' | 'enabled'
>;

export type NewWorkspace = Pick<WorkspaceRow, 'name' | 'enabled' | 'resource_limits' | 'mcp_config'>;
/** A name stays: the volumes are called by it. */
export type WorkspaceChanges = Partial<Omit<NewWorkspace, 'name'>>;
/** How it fares, as whoever runs it has found. */
export type WorkspaceNote = Pick<WorkspaceRow, 'status' | 'provider' | 'provider_workspace_id' | 'metadata'>;

export interface NewProduct {
  name: string;
  version: string;
  manifest: Record<string, unknown>;
  servers: readonly NewServer[];
}

/** What an installation did, by names of servers. */
export interface InstalledProduct {
  product: ProductRow;
  isNew: boolean;
  added: string[];
  changed: string[];
  removed: string[];
  unchanged: string[];
}

export interface CallRecord {
  /** A uuid; a record that is written twice is kept once. */
  id: string;
  projectId: string;
  runId?: string | undefined;
  messageId?: string | undefined;
  step?: number | undefined;
  client: string;
  method: string;
  server: string | null;
  replica: number | null;
  tool: string | null;
  status: CallRow['status'];
  durationMs: number;
  inputBytes: number;
  outputBytes: number;
  error: { code: string; message: string } | null;
  /** JSON text. */
  input: string | null;
  /** JSON text. */
  output: string | null;
  startedAt: Date;
}

/** What many calls have in common. */
export type CallKind = Pick<CallRecord, 'projectId' | 'client' | 'method' | 'server' | 'replica' | 'tool'>;

/** How a call can end of which there is nothing more to tell. */
export const plainStatuses = ['ok', 'tool_error', 'cancelled'] as const satisfies CallRow['status'][];

/** Many calls of which there is nothing more to tell, as nearly all are: columns of numbers. */
export interface PlainCalls {
  /** The id of a call is this and its number, in three hexadecimal digits. */
  idPrefix: string;
  kinds: readonly CallKind[];
  columns: {
    /** Which of the kinds. */
    kind: Float64Array;
    /** Which of the plain statuses. */
    status: Float64Array;
    durationMs: Float64Array;
    inputBytes: Float64Array;
    outputBytes: Float64Array;
    /** In milliseconds. */
    startedAt: Float64Array;
  };
}

export interface CallFilter {
  server?: string | undefined;
  tool?: string | undefined;
  status?: CallRow['status'] | undefined;
  since?: Date | undefined;
  /** Exclusive. */
  until?: Date | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface CallPage {
  /** Newest first. */
  calls: CallRow[];
  nextCursor: string | undefined;
}

export type RunRow = Selectable<DB['agent_runs']>;
export type RunMessageRow = Selectable<DB['agent_run_messages']>;

/** A run of an agent that begins. */
export interface NewRun {
  /** A uuid. */
  id: string;
  projectId: string;
  /** What an agent calls itself that runs elsewhere; null for our own. */
  agent: string | null;
  model: string;
  system: string | null;
  /** Names and patterns of the tools that it may use; null is all. */
  tools: readonly string[] | null;
  /** What was asked, as JSON. */
  input: unknown;
}

export interface RunMessage {
  /** A uuid. */
  id: string;
  /** From 0, in the order of the conversation. */
  position: number;
  role: RunMessageRow['role'];
  /** As JSON. */
  content: unknown;
}

/** What a run came to. */
export interface RunEnd {
  status: Exclude<RunRow['status'], 'running'>;
  /** As JSON. */
  output: unknown;
  usage: object | null;
  steps: number;
  stopReason: string | null;
  error: { code: string; message: string } | null;
}

export interface RunPage {
  /** Newest first. */
  runs: RunRow[];
  nextCursor: string | undefined;
}

export interface RunDetails {
  run: RunRow;
  /** In the order of the conversation. */
  messages: RunMessageRow[];
  /** Oldest first. */
  calls: CallRow[];
}

/**
 * What is kept in the database. A change is there when its promise settles. An `expectedVersion` that is not the one of
 * the row makes a change fail (`version_conflict`); undefined stands for any.
 */
export interface Store {
  projects(): Promise<ProjectState[]>;
  project(id: string): Promise<ProjectState | undefined>;
  /**
   * Tells of every change of a project, whoever made it, after it is there; `undefined`: some may have been missed, look
   * at all of them. Gives what ends that.
   */
  follow(listener: (projectId: string | undefined) => void): () => void;
  readonly isConnected: boolean;

  createProject(input: NewProject): Promise<ProjectRow>;
  changeProject(
    id: string,
    changes: Partial<NewProject>,
    expectedVersion: number | undefined,
  ): Promise<ProjectRow>;
  deleteProject(id: string, expectedVersion: number | undefined): Promise<void>;

  /**
   * All of them or none. In this and every other change of servers, a group that is called like a server that is not in
   * it is a `conflict`. `replace`: those that are there already become as given, unless a product brought them.
   */
  createServers(projectId: string, servers: readonly NewServer[], replace: boolean): Promise<ServerRow[]>;
  changeServer(
    projectId: string,
    name: string,
    changes: Partial<NewServer>,
    expectedVersion: number | undefined,
  ): Promise<ServerRow>;
  deleteServer(projectId: string, name: string, expectedVersion: number | undefined): Promise<void>;

  /** A name that a server or a group of the project has already is a `conflict`, in both directions. */
  createHosted(projectId: string, hosted: NewWorkspace): Promise<WorkspaceRow>;
  changeHosted(
    id: string,
    changes: WorkspaceChanges,
    expectedVersion: number | undefined,
  ): Promise<WorkspaceRow>;
  deleteHosted(id: string, expectedVersion: number | undefined): Promise<void>;
  /** What is not there stays as it is. One that is gone is nobody's fault. */
  noteHosted(id: string, note: Partial<WorkspaceNote>): Promise<void>;
  /**
   * Of all processes on the database one hosts. Tells whether it is this one, whenever it begins to, and when it does no
   * longer, because its connection was lost; it tries to get it back then. Gives what ends that, and lets the next one begin.
   */
  host(listener: (isHost: boolean) => void): () => void;

  /** Installs or upgrades. `reserved`: names of servers that have no row, and clash all the same. */
  installProduct(
    projectId: string,
    product: NewProduct,
    reserved: readonly string[],
  ): Promise<InstalledProduct>;
  products(projectId: string): Promise<ProductRow[]>;
  /** Gives the names of the servers that went with it. */
  removeProduct(projectId: string, name: string): Promise<string[]>;

  setSwitch(projectId: string, serverName: string, toolName: string | null, enabled: boolean): Promise<void>;

  /** The value that it has already changes nothing. No first key is made beside secrets of others (`conflict`). */
  putSecret(projectId: string, name: string, value: string): Promise<{ created: boolean }>;
  deleteSecret(projectId: string, name: string): Promise<void>;
  /** The value; throws where no known key opens it. */
  openSecret(sealed: SealedSecret): string;
  /** Seals every secret with a new key, or with the first one of SWITCHBOARD_SECRET_KEY. */
  rotateSecrets(): Promise<{ rotated: number; keyId: string }>;

  /** Records of projects that are gone are left out. */
  recordCalls(calls: readonly CallRecord[]): Promise<void>;
  recordPlainCalls(calls: PlainCalls): Promise<void>;
  calls(projectId: string, filter: CallFilter): Promise<CallPage>;
  /** Deletes calls and runs that are older than their project keeps them, and what is left of servers and clients long gone. Tells how many. */
  deleteOld(): Promise<number>;

  /** What servers offered when they were last seen. */
  offers(): Promise<KnownOffer[]>;
  keepOffer(offer: KnownOffer): Promise<void>;
  /** A server offers what it did before. */
  seeOffer(server: Pick<KnownOffer, 'project_id' | 'server_name'>): Promise<void>;

  createRun(run: NewRun): Promise<void>;
  /** A message that is there already is left as it is; those of a run that is gone are left out. */
  addRunMessages(runId: string, messages: readonly RunMessage[]): Promise<void>;
  /** Whoever does these runs is still there. A run that nobody sees for long is shown as failed. */
  seeRuns(ids: readonly string[]): Promise<void>;
  /** One that runs elsewhere is still there: the name of its agent; undefined where there is no such run, or it is over. */
  seeRun(projectId: string, id: string): Promise<string | undefined>;
  /** Those whose process was not seen for long have failed. */
  giveUpLostRuns(): Promise<void>;
  /** What a run came to is written once. */
  finishRun(id: string, end: RunEnd): Promise<void>;
  runs(projectId: string, filter: { limit: number; cursor?: string | undefined }): Promise<RunPage>;
  run(projectId: string, id: string): Promise<RunDetails | undefined>;

  /** Sessions of clients that were seen within that time, the latest first. */
  sessionsSeenWithin(milliseconds: number, limit: number): Promise<SessionRow[]>;
  /** Those of projects that are gone are left out. */
  keepSessions(sessions: readonly SessionRow[]): Promise<void>;
  seeSessions(hashes: readonly string[]): Promise<void>;
  forgetSessions(hashes: readonly string[]): Promise<void>;

  formerNames(): Promise<FormerNamesRow[]>;
  keepFormerNames(names: FormerNamesRow): Promise<void>;

  close(): Promise<void>;
}
