import type { CallFilter, NewProduct, NewProject, ProjectChanges } from './inputs.ts';
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
  status(): Promise<StatusView>;
  /** Tells of every transition in a project until the returned function is called. */
  subscribe(project: string, listener: ProjectListener): () => void;
}

export interface ProjectListener {
  serverChanged(event: ServerEvent): void;
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
