import type { Selectable } from 'kysely';
import { maskCredentials } from '../config/credentials.ts';
import { SwitchboardError } from '../errors.ts';
import type { Credentials } from './credentials.ts';
import type { Audit, Changes, Database } from './database.ts';
import { checkPlaces, hostedAmong } from './places.ts';
import { namedProject, type ProjectRow, requireProject, requireVersion } from './project-rows.ts';
import type { DB } from './schema.ts';
import { findServers, namesTaken } from './servers.ts';
import { isUuid } from './text.ts';

const settings = ['enabled', 'resource_limits', 'mcp_config'] as const;
const statusColumns = ['status', 'provider', 'provider_workspace_id', 'metadata'] as const;

type Workspace = Selectable<DB['agent_workspaces']>;
/** A hosted server. `version` and `updated_at` cover its settings, not its status. */
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

/** Contains unresolved `${NAME}` references. */
interface WorkspaceConfig {
  image: string | null;
  command: string | null;
  args: string[];
  stdio_bridge: boolean;
  restart_policy: 'always' | 'on-failure' | 'never';
  environment: Record<string, string>;
  port: number | null;
  /** The published port on this machine; null for any. */
  host_port: number | null;
  path: string;
  network: boolean;
  volumes: string[];
  writable_root: boolean;
  provider: WorkspaceRow['provider'];
}

export type NewWorkspace = Pick<WorkspaceRow, 'name' | 'enabled' | 'resource_limits' | 'mcp_config'>;
/** The name is fixed, because volumes are named after it. */
export type WorkspaceChanges = Partial<Omit<NewWorkspace, 'name'>>;
/** Written by the process that hosts it. */
export type WorkspaceStatus = Pick<
  WorkspaceRow,
  'status' | 'provider' | 'provider_workspace_id' | 'metadata'
>;

export class WorkspaceTable {
  private readonly database: Database;
  private readonly credentials: Credentials;

  constructor(database: Database, credentials: Credentials) {
    this.database = database;
    this.credentials = credentials;
  }

  create(projectId: string, input: NewWorkspace): Promise<WorkspaceRow> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const { name, enabled, resource_limits, mcp_config: given } = input;
      const taken = [
        ...(await findServers(changes, projectId, [{ name }])),
        ...(await hostedAmong(changes, projectId, [name])),
      ];
      if (taken.length > 0) throw namesTaken([name], project);
      const mcp_config = await this.moved(changes, audit, project, name, given);
      const row = (await changes
        .insertInto('agent_workspaces')
        .values({
          ...{ project_id: projectId, name, enabled, resource_limits: { ...resource_limits } },
          mcp_config: { ...mcp_config },
          provider: mcp_config.provider,
          status: enabled ? 'starting' : 'stopped',
        })
        .returningAll()
        .executeTakeFirstOrThrow()) as unknown as WorkspaceRow;
      await checkPlaces(changes, projectId, [name]);
      audit({ action: 'hosted.create', project, subject: name, after: shown(row) });
      return row;
    });
  }

  change(id: string, input: WorkspaceChanges, expectedVersion: number | undefined): Promise<WorkspaceRow> {
    return this.database.write(async (changes, audit) => {
      const row = await requireWorkspace(changes, id, expectedVersion);
      const { mcp_config: given } = input;
      const moved = given && {
        mcp_config: await this.moved(
          changes,
          audit,
          await requireProject(changes, row.project_id),
          row.name,
          given,
        ),
      };
      const values = chosen(settings, { ...input, ...moved });
      if (Object.keys(values).length === 0) return row;
      const changed = (await changes
        .updateTable('agent_workspaces')
        .set(values)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()) as unknown as WorkspaceRow | undefined;
      // An unchanged row is not written.
      if (changed === undefined) return row;
      audit({
        ...{ action: 'hosted.change', project: await namedProject(changes, row.project_id) },
        ...{ subject: row.name, before: shown(row), after: shown(changed) },
      });
      return changed;
    });
  }

  private async moved<Config extends object>(
    changes: Changes,
    audit: Audit,
    project: ProjectRow,
    name: string,
    config: Config,
  ): Promise<Config> {
    return (await this.credentials.moved(changes, audit, project, [{ name, config }]))[0]!;
  }

  delete(id: string, expectedVersion: number | undefined): Promise<void> {
    return this.database.write(async (changes, audit) => {
      const row = await requireWorkspace(changes, id, expectedVersion);
      const project = await namedProject(changes, row.project_id);
      await changes.deleteFrom('agent_workspaces').where('id', '=', id).execute();
      audit({ action: 'hosted.remove', project, subject: row.name, before: shown(row) });
    });
  }

  /** Columns that are not given stay unchanged. Ignores a server that was deleted meanwhile. */
  setStatus(id: string, status: Partial<WorkspaceStatus>): Promise<void> {
    const values = chosen(statusColumns, status);
    if (Object.keys(values).length === 0) return Promise.resolve();
    return this.database.run(async (queries) => {
      await queries.updateTable('agent_workspaces').set(values).where('id', '=', id).execute();
    });
  }
}

async function requireWorkspace(
  changes: Changes,
  id: string,
  expectedVersion: number | undefined,
): Promise<WorkspaceRow> {
  const row = isUuid(id)
    ? await changes
        .selectFrom('agent_workspaces')
        .selectAll()
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst()
    : undefined;
  if (row === undefined) {
    throw new SwitchboardError('not_found', `There is no hosted server with the id "${id}".`);
  }
  requireVersion(`hosted server "${row.name}"`, row.version, expectedVersion);
  return row as unknown as WorkspaceRow;
}

/** For the audit log. */
function shown({ id, name, enabled, resource_limits, mcp_config }: WorkspaceRow): object {
  return { id, name, enabled, resource_limits, mcp_config: maskCredentials(mcp_config) };
}

function chosen(columns: readonly string[], values: object): Record<string, unknown> {
  const given = values as Record<string, unknown>;
  return Object.fromEntries(
    columns.flatMap((column) => (given[column] === undefined ? [] : [[column, given[column]]])),
  );
}
