import { isDeepStrictEqual } from 'node:util';
import type { Selectable } from 'kysely';
import { maskCredentials } from '../config/credentials.ts';
import { SwitchboardError } from '../errors.ts';
import type { Credentials } from './credentials.ts';
import type { Audit, Changes, Database } from './database.ts';
import { violates } from './failure.ts';
import { checkPlaces, hostedAmong } from './places.ts';
import { notFound, type ProjectRow, requireProject, requireVersion } from './project-rows.ts';
import type { DB } from './schema.ts';

const NAMES = 'project_mcp_servers_project_id_name_key';
const columns = ['name', 'description', 'transport', 'config', 'settings', 'enabled'] as const;

export type ServerRow = Selectable<DB['project_mcp_servers']>;
export type NewServer = Pick<
  ServerRow,
  'name' | 'description' | 'transport' | 'config' | 'settings' | 'enabled'
>;

export class ServerTable {
  private readonly database: Database;
  private readonly credentials: Credentials;

  constructor(database: Database, credentials: Credentials) {
    this.database = database;
    this.credentials = credentials;
  }

  /** All or nothing. `replace` updates servers that exist already, unless they belong to a product. */
  create(projectId: string, servers: readonly NewServer[], replace: boolean): Promise<ServerRow[]> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      requireDistinct(servers);
      const present = await findServers(changes, projectId, servers);
      const taken = [
        ...present.filter(({ product_id }) => !replace || product_id !== null).map(nameOf),
        ...(await hostedAmong(changes, projectId, servers.map(nameOf))),
      ];
      if (taken.length > 0) throw namesTaken(taken.toSorted(), project);
      const configs = await this.credentials.moved(changes, audit, project, servers);
      const rows: ServerRow[] = [];
      for (const [index, given] of servers.entries()) {
        const server = { ...given, config: configs[index]! };
        const before = present.find(({ name }) => name === server.name);
        const row =
          before === undefined
            ? await insertServer(changes, projectId, null, server)
            : await updateServer(changes, before, server);
        noteChange(audit, project, before, row);
        rows.push(row);
      }
      await checkPlaces(changes, projectId, servers.map(nameOf));
      return rows;
    });
  }

  async change(
    projectId: string,
    present: string,
    input: Partial<NewServer>,
    expectedVersion: number | undefined,
  ): Promise<ServerRow> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const server = await requireServer(changes, project, present, expectedVersion);
      const taken = input.name === undefined ? [] : await hostedAmong(changes, projectId, [input.name]);
      if (taken.length > 0) throw namesTaken(taken, project);
      const { config: given } = input;
      const name = input.name ?? server.name;
      const [config] =
        given === undefined
          ? []
          : await this.credentials.moved(changes, audit, project, [{ name, config: given }]);
      const written = config === undefined ? input : { ...input, config };
      const changed = await updateServer(changes, server, written).catch((error: unknown) => {
        if (violates(error, NAMES) && input.name !== undefined) throw namesTaken([input.name], project);
        throw error;
      });
      // Enabling and disabling must work even if names clash.
      const hasMoved = input.name !== undefined || input.settings !== undefined;
      if (hasMoved) await checkPlaces(changes, projectId, [changed.name]);
      noteChange(audit, project, server, changed);
      return changed;
    });
  }

  delete(projectId: string, name: string, expectedVersion: number | undefined): Promise<void> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const server = await requireServer(changes, project, name, expectedVersion);
      await changes.deleteFrom('project_mcp_servers').where('id', '=', server.id).execute();
      audit({ action: 'server.remove', project, subject: name, before: shown(server) });
    });
  }
}

export function findServers(
  changes: Changes,
  projectId: string,
  servers: readonly { name: string }[],
): Promise<ServerRow[]> {
  if (servers.length === 0) return Promise.resolve([]);
  return changes
    .selectFrom('project_mcp_servers')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('name', 'in', servers.map(nameOf))
    .orderBy('name')
    .forUpdate()
    .execute();
}

export function insertServer(
  changes: Changes,
  projectId: string,
  productId: string | null,
  { name, description, transport, config, settings, enabled }: NewServer,
): Promise<ServerRow> {
  return changes
    .insertInto('project_mcp_servers')
    .values({
      ...{ project_id: projectId, product_id: productId },
      ...{ name, description, transport, config, settings, enabled },
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

export async function updateServer(
  changes: Changes,
  row: ServerRow,
  input: Partial<NewServer>,
): Promise<ServerRow> {
  const values: Partial<NewServer> = Object.fromEntries(
    columns.flatMap((column) => (input[column] === undefined ? [] : [[column, input[column]]])),
  );
  if (Object.keys(values).length === 0) return row;
  return changes
    .updateTable('project_mcp_servers')
    .set(values)
    .where('id', '=', row.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

function noteChange(
  audit: Audit,
  project: ProjectRow,
  before: ServerRow | undefined,
  after: ServerRow,
): void {
  // Nothing has changed.
  if (before?.version === after.version) return;
  const isSwitch =
    before !== undefined &&
    isDeepStrictEqual(chosen({ ...before, enabled: true }), chosen({ ...after, enabled: true }));
  audit({
    action: before === undefined ? 'server.create' : isSwitch ? 'server.switch' : 'server.change',
    ...{ project, subject: before?.name ?? after.name },
    ...{ before: before && shown(before), after: shown(after) },
  });
}

function chosen(row: ServerRow): unknown[] {
  return columns.map((column) => row[column]);
}

/** For the audit log. */
function shown({ id, config, product_id, ...row }: ServerRow): object {
  const { name, description, transport, settings, enabled } = row;
  return { id, product_id, name, description, transport, config: maskCredentials(config), settings, enabled };
}

/** Duplicate names would write the same row twice. */
export function requireDistinct(servers: readonly { name: string }[]): void {
  const names = servers.map(nameOf);
  const twice = [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
  if (twice.length === 0) return;
  throw new SwitchboardError(
    'invalid_input',
    `More than one server has the name ${twice.map((name) => `"${name}"`).join(', ')}.`,
    { data: { names: twice, problems: [{ path: 'servers', message: 'Names must be unique.' }] } },
  );
}

export function namesTaken(names: string[], { name: project }: ProjectRow): SwitchboardError {
  const message =
    names.length === 1
      ? `There is a server "${names[0]}" in project "${project}" already.`
      : `There are servers ${names.map((name) => `"${name}"`).join(', ')} in project "${project}" already.`;
  return new SwitchboardError('conflict', message, { data: { names } });
}

async function requireServer(
  changes: Changes,
  project: ProjectRow,
  name: string,
  expectedVersion: number | undefined,
): Promise<ServerRow> {
  const [server] = await findServers(changes, project.id, [{ name }]);
  if (server === undefined) throw notFound('server', name, project.name);
  requireVersion(`server "${name}" in project "${project.name}"`, server.version, expectedVersion);
  return server;
}

function nameOf({ name }: { name: string }): string {
  return name;
}
