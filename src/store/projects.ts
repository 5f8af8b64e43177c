import { SwitchboardError } from '../errors.ts';
import type { Database, Queries } from './database.ts';
import { violates } from './failure.ts';
import { isUuid } from './text.ts';
import type { NewProject, ProjectRow, ProjectState, WorkspaceRow } from './types.ts';

const DEFAULT_PROJECT = 'default';
/** The constraint that keeps their names apart. */
const NAMES = 'projects_name_key';

export class Projects {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  states(): Promise<ProjectState[]> {
    return this.database.readTogether((queries) => readStates(queries, undefined));
  }

  state(id: string): Promise<ProjectState | undefined> {
    if (!isUuid(id)) return Promise.resolve(undefined);
    return this.database.readTogether(async (queries) => (await readStates(queries, id))[0]);
  }

  create(input: NewProject): Promise<ProjectRow> {
    return nameTaken(input.name, () =>
      this.database.write((changes) =>
        changes.insertInto('projects').values(columnsOf(input)).returningAll().executeTakeFirstOrThrow(),
      ),
    );
  }

  change(id: string, input: Partial<NewProject>, expectedVersion: number | undefined): Promise<ProjectRow> {
    return nameTaken(input.name, () =>
      this.database.write(async (changes) => {
        const project = await requireProject(changes, id, expectedVersion);
        if (input.name !== undefined && input.name !== project.name) keepDefault(project);
        if (Object.keys(columnsOf(input)).length === 0) return project;
        return changes
          .updateTable('projects')
          .set(columnsOf(input))
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirstOrThrow();
      }),
    );
  }

  delete(id: string, expectedVersion: number | undefined): Promise<void> {
    return this.database.write(async (changes) => {
      keepDefault(await requireProject(changes, id, expectedVersion));
      await changes.deleteFrom('projects').where('id', '=', id).execute();
    });
  }
}

/** Gives the project, which stays as it is until the transaction ends. */
export async function requireProject(
  queries: Queries,
  id: string,
  expectedVersion?: number,
): Promise<ProjectRow> {
  const project = isUuid(id)
    ? await queries
        .selectFrom('projects')
        .selectAll()
        .where('id', '=', id)
        .forNoKeyUpdate()
        .executeTakeFirst()
    : undefined;
  if (project === undefined) {
    throw new SwitchboardError('unknown_project', `There is no project with the id "${id}".`);
  }
  requireVersion(`project "${project.name}"`, project.version, expectedVersion);
  return project;
}

export function requireVersion(what: string, version: number, expected: number | undefined): void {
  if (expected === undefined || expected === version) return;
  throw new SwitchboardError(
    'version_conflict',
    `The ${what} was changed meanwhile: it has version ${version}, not ${expected}.`,
    { data: { version } },
  );
}

export function notFound(kind: string, name: string, project: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no ${kind} "${name}" in project "${project}".`);
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

function keepDefault({ name }: ProjectRow): void {
  if (name !== DEFAULT_PROJECT) return;
  throw new SwitchboardError(
    'read_only',
    `The project "${name}" is always there: it cannot be deleted or renamed.`,
  );
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
