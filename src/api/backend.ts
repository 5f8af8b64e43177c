import type { NewChat, RunFilter } from './chat-input.ts';
import type { ChatEvent, ChatView, RunDetails, RunList } from './chat-views.ts';
import type { HostedCall, HostedChanges, NewHosted } from './hosted-input.ts';
import type { HostedEvent, HostedLine, HostedView } from './hosted-views.ts';
import type { CallFilter, NewProduct, NewProject, ProjectChanges } from './inputs.ts';
import type { AgentRunCall, AgentRunChanges, NewAgentRun } from './run-input.ts';
import type { NewServer, ServerChanges } from './server-input.ts';
import type {
  CallList,
  ImportResult,
  Installation,
  ProductView,
  ProjectView,
  Rotation,
  SecretView,
  ServerEvent,
  ServerTest,
  ServerView,
  StatusView,
  ToolView,
} from './views.ts';

/**
 * What the API needs of the rest of the program. `project` is what stood in the path, an id or a name. What does not
 * exist, is taken, or must not be changed is refused with a SwitchboardError; anything else that is thrown is shown to
 * nobody. With `ifVersion` a change is made only to that version.
 */
export interface Backend {
  projects: Projects;
  servers: Servers;
  tools: Tools;
  secrets: Secrets;
  products: Products;
  calls: Calls;
  imports: Imports;
  hosted: Hosted;
  chats: Chats;
  status(): Promise<StatusView>;
  /** Tells of every transition in a project until the returned function is called. */
  subscribe(project: string, listener: ProjectListener): () => void;
}

export interface ProjectListener {
  serverChanged(event: ServerEvent): void;
  /** How one that we run fares. */
  hostedChanged(event: HostedEvent): void;
  /** The project is gone: there is nothing more to tell. */
  projectRemoved(): void;
}

/** Whether something was there before. */
interface Written<View> {
  isNew: boolean;
  view: View;
}

interface Projects {
  list(): Promise<ProjectView[]>;
  get(project: string): Promise<ProjectView>;
  create(input: NewProject): Promise<ProjectView>;
  change(project: string, changes: ProjectChanges, ifVersion: number | undefined): Promise<ProjectView>;
  remove(project: string, ifVersion: number | undefined): Promise<void>;
}

interface Servers {
  list(project: string): Promise<ServerView[]>;
  get(project: string, name: string): Promise<ServerView>;
  create(project: string, input: NewServer): Promise<ServerView>;
  /** `mergeServer` says what the changes make of a server, or what is wrong with it then. */
  change(
    project: string,
    name: string,
    changes: ServerChanges,
    ifVersion: number | undefined,
  ): Promise<ServerView>;
  remove(project: string, name: string, ifVersion: number | undefined): Promise<void>;
  /** Connects to it, apart from what runs. A server that cannot be reached is an answer, not an error. */
  test(project: string, name: string): Promise<ServerTest>;
  /** The last lines of its log. */
  log(project: string, name: string): Promise<readonly string[]>;
}

interface Tools {
  list(project: string): Promise<ToolView[]>;
  /** `tool` is a public or a qualified name. */
  switch(project: string, tool: string, enabled: boolean): Promise<ToolView>;
}

interface Secrets {
  list(project: string): Promise<SecretView[]>;
  put(project: string, name: string, value: string): Promise<Written<SecretView>>;
  remove(project: string, name: string): Promise<void>;
  /** Seals all secrets of all projects with the newest key. */
  rotate(): Promise<Rotation>;
}

interface Products {
  list(project: string): Promise<ProductView[]>;
  install(project: string, product: NewProduct): Promise<Written<Installation>>;
  remove(project: string, name: string): Promise<void>;
}

interface Calls {
  list(project: string, filter: CallFilter): Promise<CallList>;
}

interface Imports {
  /** `text` is the request's body as it came: JSON, perhaps with comments. */
  import(project: string, text: string, replace: boolean): Promise<ImportResult>;
}

interface Chats {
  /** What cannot be begun is refused; what is begun is a run, and is to be finished. */
  begin(project: string, chat: NewChat): Promise<ChatRun>;
  runs(project: string, filter: RunFilter): Promise<RunList>;
  run(project: string, id: string): Promise<RunDetails>;
  /** Those of agents elsewhere, which tell of them. */
  beginRun(project: string, run: NewAgentRun): Promise<{ id: string }>;
  recordCalls(project: string, run: string, calls: readonly AgentRunCall[]): Promise<void>;
  changeRun(project: string, run: string, changes: AgentRunChanges): Promise<void>;
}

export interface ChatRun {
  id: string;
  /** Once. `signal`: whoever asked has gone, which cancels it. */
  finish(listener: (event: ChatEvent) => void, signal: AbortSignal): Promise<ChatView>;
}

/** Servers that we run. `id` is what stood in the path: an id, or a name that only one of all projects has. */
export interface Hosted {
  list(project: string | undefined): Promise<HostedView[]>;
  /** With what it uses just now. */
  get(id: string): Promise<HostedView>;
  create(input: NewHosted): Promise<HostedView>;
  /** `mergeHosted` says what the changes make of a server, or what is wrong with it then. */
  change(id: string, changes: HostedChanges, ifVersion: number | undefined): Promise<HostedView>;
  /** With `deleteVolumes`, also what one has kept that is gone already: by its name, in that project. */
  remove(id: string, options: HostedRemoval, ifVersion: number | undefined): Promise<void>;
  /** One request to it. `signal`: whoever asked has gone. An error of the server is an answer; all else is thrown. */
  call(id: string, call: HostedCall, signal: AbortSignal): Promise<HostedAnswer>;
  /** Settles when the new one runs. */
  restart(id: string): Promise<HostedView>;
  /** The last lines of its log. */
  log(id: string): Promise<readonly HostedLine[]>;
  /** The same, and every line that comes after them, with nothing in between. */
  followLog(id: string, listener: HostedLogListener): { lines: readonly HostedLine[]; stop(): void };
}

export interface HostedRemoval {
  deleteVolumes: boolean;
  project: string;
}

export interface HostedLogListener {
  line(line: HostedLine): void;
  /** The server is gone: there is nothing more to tell. */
  removed(): void;
}

/** JSON as the server sent it: its result, or its error with `code`, `message` and perhaps `data`. */
export type HostedAnswer = { resultText: string } | { errorText: string };
