import type { Selectable } from 'kysely';
import { SwitchboardError } from '../errors.ts';
import { accessOf, keysOf } from './access/cascades.ts';
import type { Changes, Database, Queries } from './database.ts';
import { violates } from './failure.ts';
import type { ProductRow } from './products.ts';
import { type ProjectRow, requireProject } from './project-rows.ts';
import type { DB } from './schema.ts';
import type { SealedSecret } from './secrets.ts';
import type { ServerRow } from './servers.ts';
import { isUuid } from './text.ts';
import type { WorkspaceRow } from './workspaces.ts';

const DEFAULT_PROJECT = 'default';
const NAMES = 'projects_name_key';

/** A disabled tool, or a disabled server if `tool_name` is null. */
type Switch = Pick<Selectable<DB['switches']>, 'server_name' | 'tool_name'>;

/** A snapshot of everything that a project runs. */
export interface ProjectState {
  project: ProjectRow;
  /** Ordered by creation time, then by name. */
  servers: ServerRow[];
  /** In the same order. Their names are unique among all servers of the project. */
  hosted: WorkspaceRow[];
  products: Pick<ProductRow, 'id' | 'name' | 'version'>[];
  switches: Switch[];
  secrets: SealedSecret[];
}

export type NewProject = Pick<ProjectRow, 'name'> &
  Partial<Pick<ProjectRow, 'description' | 'record_payloads' | 'retention_days' | 'names'>>;

export class ProjectTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  all(): Promise<ProjectState[]> {
    return this.database.readTogether((queries) => readStates(queries, undefined));
  }

  get(id: string): Promise<ProjectState | undefined> {
    if (!isUuid(id)) return Promise.resolve(undefined);
    return this.database.readTogether(async (queries) => (await readStates(queries, id))[0]);
  }

  create(input: NewProject): Promise<ProjectRow> {
    return nameTaken(input.name, () =>
      this.database.write(async (changes, audit) => {
        const project = await changes
          .insertInto('projects')
          .values(columnsOf(input))
          .returningAll()
          .executeTakeFirstOrThrow();
        audit({ action: 'project.create', project, subject: project.name, after: shown(project) });
        return project;
      }),
    );
  }

  change(id: string, input: Partial<NewProject>, expectedVersion: number | undefined): Promise<ProjectRow> {
    return nameTaken(input.name, () =>
      this.database.write(async (changes, audit) => {
        const project = await requireProject(changes, id, expectedVersion);
        if (input.name !== undefined && input.name !== project.name) keepDefault(project);
        if (Object.keys(columnsOf(input)).length === 0) return project;
        const changed = await changes
          .updateTable('projects')
          .set(columnsOf(input))
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirstOrThrow();
        if (changed.version !== project.version) {
          audit({
            ...{ action: 'project.change', project: changed, subject: project.name },
            ...{ before: shown(project), after: shown(changed) },
          });
        }
        return changed;
      }),
    );
  }

  delete(id: string, expectedVersion: number | undefined): Promise<void> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, id, expectedVersion);
      keepDefault(project);
      const before = { ...shown(project), ...(await contentsOf(changes, id)) };
      await changes.deleteFrom('projects').where('id', '=', id).execute();
      audit({ action: 'project.remove', project, subject: project.name, before });
    });
  }

  /** Switches a tool, or the whole server if `toolName` is null. */
  setSwitch(projectId: string, serverName: string, toolName: string | null, enabled: boolean): Promise<void> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const rows = enabled
        ? await changes
            .deleteFrom('switches')
            .where('project_id', '=', projectId)
            .where('server_name', '=', serverName)
            .where('tool_name', 'is not distinct from', toolName)
            .returning('created_at')
            .execute()
        : await changes
            .insertInto('switches')
            .values({ project_id: projectId, server_name: serverName, tool_name: toolName })
            .onConflict((conflict) => conflict.doNothing())
            .returning('created_at')
            .execute();
      if (rows.length === 0) return;
      audit({
        ...{ action: toolName === null ? 'server.switch' : 'tool.switch', project },
        subject: toolName === null ? serverName : `${serverName}/${toolName}`,
        ...{ before: { enabled: !enabled }, after: { enabled } },
      });
    });
  }
}

async function readStates(queries: Queries, id: string | undefined): Promise<ProjectState[]> {
  const projects = await queries
    .selectFrom('projects')
    .selectAll()
    .$if(id !== undefined, (query) => query.where('id', '=', id!))
    .orderBy('created_at')
    .orderBy('name')
    .execute();
  const servers = await queries
    .selectFrom('project_mcp_servers')
    .selectAll()
    .$if(id !== undefined, (query) => query.where('project_id', '=', id!))
    .orderBy('created_at')
    .orderBy('name')
    .execute();
  const hosted = await queries
    .selectFrom('agent_workspaces')
    .selectAll()
    .where('container_type', '=', 'mcp_server')
    .$if(id !== undefined, (query) => query.where('project_id', '=', id!))
    .orderBy('created_at')
    .orderBy('name')
    .execute();
  const products = await queries
    .selectFrom('products')
    .select(['id', 'project_id', 'name', 'version'])
    .$if(id !== undefined, (query) => query.where('project_id', '=', id!))
    .orderBy('name')
    .execute();
  const switches = await queries
    .selectFrom('switches')
    .select(['project_id', 'server_name', 'tool_name'])
    .$if(id !== undefined, (query) => query.where('project_id', '=', id!))
    .execute();
  const secrets = await queries
    .selectFrom('secrets')
    .selectAll()
    .$if(id !== undefined, (query) => query.where('project_id', '=', id!))
    .orderBy('name')
    .execute();
  const serversOf = byProject(servers);
  const hostedOf = byProject(hosted);
  const productsOf = byProject(products);
  const switchesOf = byProject(switches);
  const secretsOf = byProject(secrets);
  return projects.map((project) => ({
    project,
    servers: serversOf(project.id),
    hosted: hostedOf(project.id) as unknown as WorkspaceRow[],
    products: productsOf(project.id).map(({ id, name, version }) => ({ id, name, version })),
    switches: switchesOf(project.id).map(({ server_name, tool_name }) => ({ server_name, tool_name })),
    secrets: secretsOf(project.id),
  }));
}

function byProject<Row extends { project_id: string }>(rows: Row[]): (id: string) => Row[] {
  const groups = Map.groupBy(rows, ({ project_id }) => project_id);
  return (id) => groups.get(id) ?? [];
}

function columnsOf<Input extends Partial<NewProject>>(
  input: Input,
): Pick<Input, Extract<keyof Input, keyof NewProject>> {
  const names = ['name', 'description', 'record_payloads', 'retention_days', 'names'] as const;
  return Object.fromEntries(
    names.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])),
  ) as Pick<Input, Extract<keyof Input, keyof NewProject>>;
}

/** For the audit log. */
function shown({ id, name, description, record_payloads, retention_days, names }: ProjectRow): object {
  return { id, name, description, record_payloads, retention_days, names };
}

/** For the audit log: what goes with the project. Servers are named only: their own entries have the rest. */
async function contentsOf(changes: Changes, id: string): Promise<object> {
  const [state] = await readStates(changes, id);
  const { servers = [], hosted = [], products = [], secrets = [] } = state ?? {};
  const keys = await keysOf(changes, id);
  return {
    ...(await accessOf(changes, { project: id, principals: keys.map((key) => key.id) })),
    ...{ keys, servers: servers.map(named), hosted: hosted.map(named), products: products.map(named) },
    secrets: secrets.map(({ name }) => name),
  };
}

function named({ id, name }: { id: string; name: string }): object {
  return { id, name };
}

function keepDefault({ name }: ProjectRow): void {
  if (name !== DEFAULT_PROJECT) return;
  throw new SwitchboardError('read_only', `The project "${name}" cannot be deleted or renamed.`);
}

async function nameTaken<Result>(name: string | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!violates(error, NAMES) || name === undefined) throw error;
    throw new SwitchboardError('conflict', `There is a project "${name}" already.`, {
      cause: error,
      data: { names: [name] },
    });
  }
}
